"""Export of a month of the archive to a lake, verified, against COPY of the same rows to nowhere and against JDBC.

The job through JDBC reads the same rows and writes the same partitions of Parquet. It verifies nothing and leaves out
the attempts, so it does less.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench import jdbc
from bench.server import connected
from bench.session import Session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        # Spark fetches everything at once through JDBC unless told otherwise: room for a million rows.
        memory = {"spark.driver.memory": "4g"}
        spark = get_session("bench export", "local[2]", conf=memory | jdbc.settings())
        copies: list[float] = []
        exports: list[float] = []
        plain: list[float] = []
        careful: list[float] = []
        sizes: list[float] = []
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
                if jdbc.jar() is not None:
                    plain.append(through_jdbc(spark, dsn, count))
                    careful.append(through_jdbc(spark, dsn, count, **jdbc.tuned(count)))
        finally:
            spark.stop()
    company = {"export rows/s": exports, "COPY rows/s": copies, "cores": [os.cpu_count() or 1]}
    session.figure(f"verified export of {count:,} messages / COPY binary", ratios(exports, copies), beside=company)
    session.figure("bytes in the lake / COPY binary", sizes)
    if not plain:
        session.say(jdbc.MISSING)
        return
    name = "verified export / the same through JDBC, unverified"
    session.figure(f"{name}, default settings", ratios(exports, plain), at_least=2.0, beside={"JDBC rows/s": plain})
    session.figure(
        f"{name}, two partitions, fetchsize 10,000", ratios(exports, careful), beside={"JDBC rows/s": careful}
    )


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Pair by pair, as they were measured."""
    return [our / their for our, their in zip(ours, theirs, strict=True)]


def through_jdbc(spark: SparkSession, dsn: str, count: int, **options: str) -> float:
    """Rows per second of the same partitions of Parquet, made with what Spark brings along."""
    with tempfile.TemporaryDirectory(prefix="mz-lake-") as place:
        began = time.monotonic()
        frame = jdbc.archive(spark, dsn, **options)
        parts = frame.selectExpr("*", "year(created_at) as year", "month(created_at) as month", "channel as endpoint")
        writer = parts.write.partitionBy("year", "month", "endpoint").option("compression", "zstd")
        writer.parquet(f"{place}/data")
        rate = count / (time.monotonic() - began)
        assert spark.read.parquet(f"{place}/data").count() == count
        return rate
