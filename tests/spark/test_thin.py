"""Columns that travel together arrive as they would alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow
import pytest

from menzil.spark import read
from menzil.spark.source import thin
from menzil.spark.source.arrow import opened
from menzil.spark.source.relations import RELATIONS, Column
from menzil.spark.source.thin import Plan
from tests.spark import stock
from tests.spark.lake_history import fill

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = RELATIONS["archive"]
#: Under names of their own, as a schema of the user's may have them.
PLAN = Plan([(column, column.name.upper()) for column in ARCHIVE.columns])
ALL = [column for column in ARCHIVE.columns if column.type in thin._TEXTS]


def fetched(dsn: str, packed: list[Column]) -> pyarrow.Table:
    with opened(dsn, 4 << 20) as source:
        query = f"select {PLAN.projection(packed)} from menzil.archive order by id"
        return pyarrow.Table.from_batches(list(PLAN.unpack(source.batches(query), packed)))


def test_every_value_of_every_type_arrives_however_the_columns_travel(db: str) -> None:
    fill(db)
    alone = fetched(db, [])
    assert alone.num_rows == 60
    assert {column.name for column in ALL} == {column.name for column in ARCHIVE.columns}
    for number in range(2, len(ALL) + 1):
        together = fetched(db, ALL[:number])
        assert together.schema == alone.schema
        assert together.equals(alone)
    assert fetched(db, ALL[5:]).equals(alone)


@pytest.mark.parametrize(
    ("counts", "packed"),
    [("{0,0,3,0}", "status channel priority"), ("{1,0,3,4}", ""), ("{0,0,0,0}", "status channel endpoint_id priority")],
)
def test_columns_with_nothing_in_them_travel_together_and_one_alone_does_not(counts: str, packed: str) -> None:
    plan = Plan([(ARCHIVE.column(name), name) for name in ("status", "channel", "endpoint_id", "priority")])
    assert [column.name for column in plan.packed(counts)] == packed.split()


def test_a_read_whose_first_rows_say_nothing_of_the_later_ones_is_complete(spark: SparkSession, db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        stock.archive(conn, 2 * thin.SAMPLE, months=1)
        conn.execute("update menzil.message set headers = null")
        conn.execute("vacuum full menzil.message")
        late = "id > (select max(id) - 300 from menzil.archive) and id % 3 = 1"  # these came back once
        conn.execute(
            "update menzil.message set headers = jsonb_build_object('n', id), redrive_of = id - 1,"
            f" scheduled_at = created_at where {late}"
        )
        conn.execute(f"update menzil.returned set state = int8send(id) where {late}")
        row = conn.execute("select count(*), count(headers) from menzil.archive").fetchone()
    names = ["id", "headers", "state", "redrive_of", "scheduled_at", "ordering_key"]
    plan = Plan([(ARCHIVE.column(name), name) for name in names])
    with opened(db, 4 << 20) as source:
        packed = plan.packed(source.one(plan.probe("menzil.archive", None) or ""))
    assert [column.name for column in packed] == ["headers", "state", "redrive_of", "scheduled_at"]
    found: list[Any] = read(spark, db, columns=names, numPartitions=1).collect()
    full = [each for each in found if each.headers is not None]
    assert row == (len(found), len(full)) == (2 * thin.SAMPLE, 100)
    for each in full:
        assert each.headers == f'{{"n": {each.id}}}'
        assert (bytes(each.state), each.redrive_of) == (each.id.to_bytes(8, "big"), each.id - 1)
        assert each.scheduled_at is not None
    assert not any(each.state or each.redrive_of or each.scheduled_at for each in found if each.headers is None)
