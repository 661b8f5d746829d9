"""The whole way on the PySpark that Python finds first: `python -m tests.spark.round_trip DIRECTORY`, with MENZIL_DSN.

Sends, ends, exports, verifies, reads the feed, writes a stream, replays and audits. Prints a line for each when it is
done, and fails at the first thing that is not as it should be. test_other_pyspark.py runs it on other versions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import psycopg
import pyspark

from menzil.spark import get_session, lake, read
from menzil.spark.jobs.audit import audit
from menzil.spark.jobs.export import export
from menzil.spark.jobs.fanout import fanout
from menzil.spark.jobs.replay import replay
from menzil.spark.jobs.send import send
from tests.spark.lake_history import event_lines, fill, in_database, in_lake, lines_in_lake


def main(place: Path) -> None:
    dsn = os.environ["MENZIL_DSN"]
    spark = get_session("round trip", "local[2]", quick=True, conf={"spark.sql.codegen.wholeStage": "false"})
    assert spark.version == pyspark.__version__
    fill(dsn, 1, 30)
    exported(spark, dsn, place)
    # Before anything else is sent: the feed is compared with the whole archive.
    streamed(spark, dsn, place)
    sent(spark, dsn)
    with psycopg.connect(dsn) as conn:
        before = count(conn)
    for repeated in (False, True):
        done = replay(spark, dsn, str(place / "lake"), run_id="again", status="failed", endpoint="partner")
        with psycopg.connect(dsn) as conn:
            assert count(conn) - before == done.messages > 0
        assert done.repeated is repeated
    say(f"replay {done.messages}")
    # No samples: their stories would be read, and Python has no local time for the first day of the year 1.
    report = audit(spark, str(place / "lake"), samples=0)
    assert report.counts["ended"] == 30
    say(f"audit {report.counts['ended']}")
    spark.stop()


def exported(spark: Any, dsn: str, place: Path) -> None:
    report = export(spark, dsn, place / "lake")
    assert in_lake(place / "lake") == in_database(dsn)
    assert lines_in_lake(place / "lake") == event_lines(dsn)
    assert lake.verify(place / "lake", dsn, spark=spark).problems == ()
    found = lake.read(spark, place / "lake").where("status = 'failed'").count()
    assert found == read(spark, dsn, "archive").where("status = 'failed'").count() > 0
    say(f"export {report.rows}")


def streamed(spark: Any, dsn: str, place: Path) -> None:
    """Everything once, over two runs of one query, and messages made of a stream once."""
    seen: list[int] = []

    def run() -> None:
        feed = (
            spark.readStream.format("menzil").option("dsn", dsn).option("table", "archive").schema("id bigint").load()
        )
        writer = feed.writeStream.foreachBatch(lambda frame, _: seen.extend(row.id for row in frame.collect()))
        query = writer.option("checkpointLocation", str(place / "feed")).trigger(availableNow=True).start()
        assert query.awaitTermination(300)
        assert query.exception() is None

    run()
    assert sorted(seen) == list(range(1, 31))
    fill(dsn, 31, 36)
    run()
    assert sorted(seen) == list(range(1, 37)), "nothing twice, nothing left out"
    say(f"readStream {len(seen)}")
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('copies')")
    lines = place / "lines"
    lines.mkdir()
    (lines / "a.json").write_text("".join(f'{{"payload": "{{\\"n\\": {n}}}"}}\n' for n in range(40)))
    rows = spark.readStream.schema("payload string").json(str(lines)).selectExpr("payload")
    writer = rows.writeStream.format("menzil").option("dsn", dsn).option("endpoint", "copies")
    query = writer.option("checkpointLocation", str(place / "copies")).trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    assert query.exception() is None
    with psycopg.connect(dsn) as conn:
        found = conn.execute(
            "select count(*), count(distinct payload ->> 'n') from menzil.queue where channel = 'copies'"
        )
        assert found.fetchone() == (40, 40)
    say("writeStream 40")


def sent(spark: Any, dsn: str) -> None:
    frame = spark.range(50).selectExpr("concat('{\"n\": ', id, '}') as payload")
    for _ in range(2):  # the second time it is done already
        send(spark, frame, dsn, send_id="once", endpoint="copies")
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert conn.execute("select count(*) from menzil.queue where channel = 'copies'").fetchone() == (90,)
        conn.execute("select menzil.create_event_type('order.paid')")
        conn.execute("select menzil.subscribe('order.paid', 'copies')")
    say("send 50")
    events = spark.range(5).selectExpr("'order.paid' as event_type", "concat('{\"n\": ', id, '}') as payload")
    assert fanout(spark, events, dsn, send_id="events").messages == 5
    say("fanout 5")


def count(conn: Any) -> int:
    return int(conn.execute("select count(*) from menzil.queue where channel = 'partner'").fetchone()[0])


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
