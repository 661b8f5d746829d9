"""The change feed as PySpark 4.0 and 4.1 ask for it: without a word about where a batch begins. Needs no session."""

from __future__ import annotations

import pytest
from pyspark.sql.types import LongType, StructField, StructType

from menzil.model.errors import RefusedError, UsageError
from menzil.spark.source.older_feed import OlderFeedReader
from menzil.spark.source.places import Place
from tests.spark.lake_history import fill

SCHEMA = StructType([StructField("id", LongType())])


def read(reader: OlderFeedReader, start: dict[str, object], end: dict[str, object]) -> list[int]:
    found = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return sorted(number for batch in found for number in batch.column(0).to_pylist())


def test_a_reader_that_is_not_told_where_it_is_reads_everything_once(db: str) -> None:
    fill(db, 1, 6)
    options = {"dsn": db, "table": "archive", "startingOffsets": "earliest"}
    reader = OlderFeedReader(options, SCHEMA)
    start = reader.initialOffset()
    end = reader.latestOffset()
    assert read(reader, start, end) == [1, 2, 3, 4, 5, 6]
    assert reader.latestOffset() == end, "nothing new: no empty batch"
    fill(db, 7, 8)
    later = reader.latestOffset()
    assert read(reader, end, later) == [7, 8]

    restarted = OlderFeedReader(
        options, SCHEMA
    )  # Spark has the offsets from the checkpoint, and says them with the batch
    fill(db, 9, 9)
    newest = restarted.latestOffset()
    assert read(restarted, later, newest) == [9]
    begin = Place.of(later)
    elsewhere = Place(begin.xid, begin.id, begin.drop, "another server").offset()
    with pytest.raises(RefusedError, match="another server"):
        OlderFeedReader(options, SCHEMA).partitions(elsewhere, newest)


def test_a_limit_that_cannot_be_kept_is_refused(db: str) -> None:
    with pytest.raises(UsageError, match="cannot limit the rows of a batch"):
        OlderFeedReader({"dsn": db, "table": "archive", "maxRowsPerTrigger": "5"}, SCHEMA)
