"""Messages that share an end are read as if each had brought it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import psycopg
import pyarrow
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from menzil.model.errors import RefusedError
from menzil.spark.source import ends, partitions
from menzil.spark.source.arrow import opened
from menzil.spark.source.options import ReadOptions
from menzil.spark.source.partitions import Piece
from menzil.spark.source.reader import MenzilReader
from menzil.spark.source.relations import RELATIONS
from menzil.spark.source.survey import Survey
from menzil.spark.source.thin import Plan
from tests.spark import archiving

ARCHIVE = RELATIONS["archive"]
#: Under names of their own, as a schema of the user's may have them.
PLAN = Plan([(column, column.name.upper()) for column in ARCHIVE.columns])

#: Fifty at a time: without responses, with one each, every other one in a second try, dead; the rest far apart.
_COLUMNS = """id, status, channel, priority, num_attempts, retry_count, created_at, first_leased_at, leased_at,
  ended_at, ended_xid, worker, payload, ordering_key, correlation_id, last_error, response"""
_ROWS = """
select g, case when kind = 3 then 'failed' else 'completed' end, 'c' || g %% 3, 0, 1 + again, again, at,
       at + interval '1 ms', ended_at - interval '1 s', ended_at, pg_current_xact_id(), nullif('w' || kind, 'w1'),
       jsonb_build_object('n', g), case when g %% 7 = 0 then 'k' end, gen_random_uuid(),
       case when kind = 3 then 'broken' end,
       case when kind in (1, 2, 4) and g %% 5 > 0 then jsonb_build_object('status', g) end
  from generate_series(1, 1000) g
 cross join lateral (select case when g %% 40 = 1 then 4 else g / 50 %% 4 end as kind) k
 cross join lateral (
   select case when kind = 2 then g %% 2 else 0 end as again, timestamptz '2026-01-03Z' + g * interval '1 ms' as at,
          timestamptz '2026-01-04Z' + case when kind = 4 then 900 else g / 50 end * interval '1 s' as ended_at) t"""


@pytest.fixture
def piece(db: str) -> Piece:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil._make_archive_month('2026-01-01Z')")
        archiving.archive(conn, _COLUMNS, _ROWS, {})
        query = "select distinct status, attempt, responses is null, hi_id - lo_id < 4 * n from menzil.done"
        assert set(ALL_KINDS) <= set(conn.execute(query).fetchall())
    with Survey(db) as survey:
        (piece,) = survey.archive([], 1)
    assert piece.ends is not None
    return piece


ALL_KINDS = (
    ("completed", 1, True, True), ("completed", 1, False, True), ("completed", 1, False, False),
    ("completed", 2, False, True), ("failed", 1, True, True),
)  # fmt: skip


def plainly(dsn: str, plan: Plan, piece: Piece, conditions: list[str]) -> pyarrow.Table:
    with opened(dsn, 4 << 20, piece.settings) as source:
        query = partitions.select(plan.projection([]), piece, conditions)
        return pyarrow.Table.from_batches(list(source.batches(query))).sort_by("ID").combine_chunks()


def together(dsn: str, plan: Plan, piece: Piece, conditions: list[str], packed: list[Any]) -> pyarrow.Table:
    with opened(dsn, 4 << 20, piece.settings) as source:
        found = list(ends.batches(source, plan, packed, piece, conditions))
    return pyarrow.Table.from_batches(found).sort_by("ID").combine_chunks()


@pytest.mark.parametrize("conditions", [[], ["status = 'completed'", "id % 3 = 1"], ["worker is null"], ["id = 7"]])
def test_every_value_of_every_message_arrives(db: str, piece: Piece, conditions: list[str]) -> None:
    alone = plainly(db, PLAN, piece, conditions)
    assert len(alone) > 0
    assert conditions or len(alone) == 1000
    rare = [ARCHIVE.column(name) for name in ("scheduled_at", "content", "worker", "ordering_key")]
    for packed in ([], rare):
        found = together(db, PLAN, piece, conditions, packed)
        assert found.schema == alone.schema
        assert found.equals(alone)


def test_a_piece_without_such_ends_has_all_its_messages(db: str, piece: Piece) -> None:
    assert together(db, PLAN, replace(piece, ends="false"), [], []).equals(plainly(db, PLAN, piece, []))


def test_only_what_is_asked_for_is_sent(db: str, piece: Piece) -> None:
    for names in (("id", "worker", "ended_xid"), ("status", "id", "leased_at", "payload")):
        plan = Plan([(ARCHIVE.column(name), name.upper()) for name in names])
        assert ends.shared(plan, piece)
        assert together(db, plan, piece, [], []).equals(plainly(db, plan, piece, []))


def test_names_of_channels_are_sent_once_or_with_each_message_and_are_the_same(
    db: str, piece: Piece, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(db) as conn:
        conn.execute("update menzil.channel set dropped_at = now() where name = 'c1'")
    plan = Plan([(ARCHIVE.column(name), name.upper()) for name in ("channel", "id", "worker", "status")])
    alone = plainly(db, plan, piece, [])
    assert set(alone["CHANNEL"].to_pylist()) == {"c0", "c1", "c2"}
    asked = []
    for most in (ends.NAMES, 2):
        monkeypatch.setattr(ends, "NAMES", most)
        with opened(db, 4 << 20, piece.settings) as source:
            batches = source.batches
            monkeypatch.setattr(source, "batches", lambda text, share=1.0: asked.append(text) or batches(text, share))  # noqa: B023
            found = pyarrow.Table.from_batches(list(ends.batches(source, plan, [], piece, []))).sort_by("ID")
        assert found.combine_chunks().equals(alone)
    with psycopg.connect(db) as conn:
        plans = ["\n".join(line for (line,) in conn.execute(f"explain {text}".encode())) for text in asked]
    # The join is left out where the name comes from the other query. The rest of a piece has it.
    assert [text.count(" on channel ") for text in plans] == [0, 1, 2, 1]


def test_one_column_of_the_end_or_a_piece_without_ends_is_read_as_it_is(piece: Piece) -> None:
    one = Plan([(ARCHIVE.column(name), name) for name in ("id", "status", "payload")])
    assert not ends.shared(one, piece)
    assert not ends.shared(PLAN, replace(piece, ends=None))


def test_a_message_whose_end_was_not_there_when_ends_were_read_is_never_given_another(db: str, piece: Piece) -> None:
    for some in ("lo_id > 300", "lo_id < 300"):
        with pytest.raises(RefusedError, match="changed while it was read"):
            together(db, PLAN, replace(piece, ends=some), [], [])


def test_each_message_brings_its_end_where_no_snapshot_says_which_ends_there_were(db: str, piece: Piece) -> None:
    schema = StructType(
        [StructField("id", LongType()), *(StructField(name, StringType()) for name in ("status", "worker"))]
    )

    def planned() -> list[Piece]:
        reader = MenzilReader(ReadOptions.of({"dsn": db, "table": "archive"}), schema)
        return [each.value.piece for each in reader.partitions()]

    assert [each.ends for each in planned()] == [piece.ends]
    with psycopg.connect(db) as conn:  # as a dump of another server brings them
        conn.execute("update menzil.done set ended_xid = '18446744073709550000'")
    assert planned() == [replace(piece, ends=None)]


def test_a_month_without_statistics_is_not_read_again_for_each_end(db: str) -> None:
    one_by_one = _ROWS.replace("generate_series(1, 1000)", "generate_series(1, 5000)").replace(
        "case when g %% 40 = 1 then 4 else g / 50 %% 4 end", "2"
    )
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil._make_archive_month('2026-01-01Z')")
        conn.execute("alter table menzil.archive_2026_01 set (autovacuum_enabled = off)")
        archiving.archive(conn, _COLUMNS, one_by_one.replace("else g / 50 end", "else g end"), {})
        query = "select reltuples, relpages from pg_class where oid = 'menzil.archive_2026_01'::regclass"
        assert conn.execute(query).fetchone() == (-1, 0)  # as after a restore
        conn.execute("set max_parallel_workers_per_gather = 0")
        query = """explain (analyze, buffers, format json) select count(payload) from menzil._ended
                    where created_at >= '2026-01-01Z' and created_at < '2026-02-01Z' and lo_id > 0 and lo_id <= 5000"""
        ((plan,),) = conn.execute(query)
    root = plan[0]["Plan"]
    assert root["Shared Hit Blocks"] + root["Shared Read Blocks"] < 5000 * 20
