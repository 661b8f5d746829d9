"""Export of a month of the archive to a lake, verified, against COPY of the same rows to nowhere."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from bench.server import connected
from bench.session import Session

_MONTH = "2025-03"

# Ended messages as a webhook leaves them: most delivered at once, some after a failure.
_FILL = """
insert into menzil.archive (id, status, channel, endpoint_id, priority, num_attempts, retry_count, created_at,
  first_leased_at, leased_at, ended_at, ended_xid, worker, payload, payload_hash, correlation_id, response)
select g, 'completed', 'partner-' || g %% 20, 1, 0, case when g %% 10 = 0 then 2 else 1 end, 0, at, at, at,
       at + interval '0.2 s', pg_current_xact_id(), 'worker-1',
       jsonb_build_object('order', g, 'customer', md5(g::text), 'lines', jsonb_build_array(g %% 9, 'book')),
       md5(g::text), gen_random_uuid(), '{"status": 200, "duration_ms": 12.5}'
  from generate_series(1, %s::integer) g
  cross join lateral (select '2025-03-01 00:00Z'::timestamptz + g * interval '1 s' as at) t"""

_TRIES = """
insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker, error)
select a.id, 1, (select min(c.id) from menzil.channel c), 'failed', a.created_at, a.created_at, 'worker-1', 'HTTP 503'
  from menzil.archive a where a.num_attempts = 2"""


def run(session: Session) -> None:
    """Copy and export in turn; the ratio is export's speed to that of the copy."""
    from menzil.spark import get_session
    from menzil.spark.jobs.export import export

    count = 100_000 if session.quick else 1_000_000
    dsn = session.server.database()
    with connected(dsn) as conn:
        session.say(f"fills the archive with {count:,} messages")
        conn.execute("select menzil.channel_set('partner')")
        conn.execute("select menzil._make_archive_month('2025-03-01 00:00Z')")
        conn.execute(_FILL, (count,))
        conn.execute(_TRIES)
        conn.execute("vacuum analyze menzil.archive")
        spark = get_session("bench export", conf={"spark.driver.memory": "1g"})
        copies, exports, sizes = [], [], []
        try:
            for repeat in session.repeat():
                began = time.monotonic()
                with conn.cursor().copy("copy (select * from menzil.archive) to stdout (format binary)") as copy:
                    size = sum(len(part) for part in copy)
                copies.append(count / (time.monotonic() - began))
                with tempfile.TemporaryDirectory(prefix="mz-lake-") as place:
                    began = time.monotonic()
                    report = export(spark, dsn, place, run_id=f"bench-{repeat}", months=[_MONTH])
                    exports.append(count / (time.monotonic() - began))
                    assert report.rows == count
                    files = sum(file.stat().st_size for file in Path(place, "data").rglob("*.parquet"))
                    sizes.append(files / size)
        finally:
            spark.stop()
    ratios = [export_rate / copy_rate for export_rate, copy_rate in zip(exports, copies, strict=True)]
    company = {"export rows/s": exports, "COPY rows/s": copies, "cores": [os.cpu_count() or 1]}
    session.figure(f"verified export of {count:,} messages / COPY binary", ratios, beside=company)
    session.figure("bytes in the lake / COPY binary", sizes)
