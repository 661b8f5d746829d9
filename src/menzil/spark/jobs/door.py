"""The front door: a frame of message columns goes in by the writer of format("menzil"), exactly once per send id."""

from __future__ import annotations

from pyspark.sql import DataFrame

from menzil.ops import pipeline
from menzil.spark.database import for_driver
from menzil.spark.read import ensure_source
from menzil.spark.source.door import ask


def already_sent(dsn: str, send_id: str) -> int | None:
    """How many messages this send id has made, or None when it is not done. Driver."""
    status = ask(dsn, pipeline.bulk_status(send_id))
    return None if status is None or status.state != "done" else status.created_count


def write(frame: DataFrame, dsn: str, send_id: str, *, what: str) -> int:
    """Send the rows in one transaction and say how many messages that made. Runs the frame once, in tasks."""
    ensure_source(frame.sparkSession)
    found = str(for_driver(dsn))  # the process that plans the write has another environment
    writer = frame.write.format("menzil").option("dsn", found).option("sendId", send_id).option("what", what)
    writer.mode("append").save()
    made = already_sent(dsn, send_id)
    assert made is not None, "the writer returned before its send was done"
    return made
