"""`df.writeStream.format("menzil")`: a batch is sent once, however often Spark runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from menzil.spark.session import explain
from menzil.spark.source.datasource import MenzilDataSource
from tests.spark.sending import one, staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def stream(spark: SparkSession, dsn: str, place: Path, checkpoint: str = "checkpoint", **options: str) -> None:
    """Send what the files of the directory hold, a file per batch, and stop."""
    spark.dataSource.register(MenzilDataSource)
    lines = spark.readStream.format("text").option("maxFilesPerTrigger", "1").load(str(place / "in"))
    chosen = {"dsn": dsn, "endpoint": "work", "checkpointLocation": str(place / checkpoint), **options}
    writer = lines.selectExpr("value as payload").writeStream.format("menzil").options(**chosen)
    writer.outputMode("append").trigger(availableNow=True).start().awaitTermination()


def files(place: Path, *names: str) -> None:
    (place / "in").mkdir(exist_ok=True)
    for name in names:
        (place / "in" / name).write_text("".join(f'{{"file": "{name}", "line": {n}}}\n' for n in range(10)))


def forget_the_last_batch(place: Path) -> None:
    """What a driver leaves that died after the sink had committed and before the checkpoint knew."""
    commits = place / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


SENT = "select count(*), count(distinct payload) from menzil.queue"


@pytest.mark.usefixtures("compiled")
def test_every_batch_is_a_send_and_a_replayed_one_changes_nothing(
    spark: SparkSession, work: str, tmp_path: Path
) -> None:
    files(tmp_path, "a", "b")
    stream(spark, work, tmp_path)
    assert one(work, SENT) == (20, 20)
    assert one(work, "select count(*), sum(row_count) from menzil.bulk_sends where state = 'done'") == (2, 20)
    forget_the_last_batch(tmp_path)
    stream(spark, work, tmp_path)  # runs the last batch again
    assert one(work, SENT) == (20, 20)
    files(tmp_path, "c")
    stream(spark, work, tmp_path)
    assert one(work, SENT) == (30, 30)
    assert staged(work) == 0


def test_a_new_checkpoint_sends_anew_unless_the_send_id_says_that_it_is_the_same_query(
    spark: SparkSession, work: str, tmp_path: Path
) -> None:
    files(tmp_path, "a")
    stream(spark, work, tmp_path, sendId="orders")
    stream(spark, work, tmp_path, "moved", sendId="orders")
    assert one(work, SENT) == (10, 10)
    assert one(work, "select send_id from menzil.bulk_sends") == "orders/0"
    stream(spark, work, tmp_path, "another")
    assert one(work, SENT) == (20, 10)


def test_a_batch_with_bad_rows_stops_the_query_with_a_sentence_and_goes_on_when_they_are_allowed(
    spark: SparkSession, work: str, tmp_path: Path
) -> None:
    files(tmp_path, "a")
    (tmp_path / "in" / "bad").write_text("no json\n")
    with pytest.raises(Exception) as refused:  # noqa: PT011  # whatever Spark makes of it
        stream(spark, work, tmp_path)
    assert "1 of 1 rows cannot be sent, so none was." in explain(refused.value).message
    assert one(work, "select count(*) from menzil.queue") in (0, 10)  # files come in the order of their times
    assert one(work, "select count(*) from menzil.bulk_sends where state = 'open'") == 0
    (tmp_path / "in" / "bad").write_text("1\n")
    stream(spark, work, tmp_path)
    assert one(work, "select count(*) from menzil.queue") == 11
