"""The lake without a database: names, fingerprints that add up, what a table remembers, files as tasks write them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import LocalFileSystem
from pyspark.sql import SparkSession

from menzil.model.errors import UsageError
from menzil.spark import lake
from menzil.spark.lake import LakeDamagedError, LakeError, layout
from menzil.spark.lake.compare import still_there
from menzil.spark.lake.cover import Part, covered, missing
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.memory import RUNS, SLICES, Memory, Slice, cover, run_property, source_property, total
from menzil.spark.lake.place import address
from menzil.spark.lake.schema import COLUMNS, EVENTS, MESSAGES, TABLES, arrow, iceberg, spark_columns, with_promoted
from menzil.spark.lake.table import open_lake
from menzil.spark.parquet import write as parquet
from menzil.spark.parquet.read import damage
from menzil.spark.parquet.write import KEY
from menzil.spark.session.launch import names_in_utf8
from menzil.spark.source import partitions
from menzil.spark.source.options import ReadOptions

BIG = st.integers(-(2**63), 2**63 - 1)
PRINTS = st.builds(
    Fingerprint, rows=st.integers(0, 9), sum=BIG, xor=BIG, min_id=st.none() | BIG, max_id=st.none() | BIG
)


@given(st.text(min_size=1, max_size=200))
def test_a_directory_is_a_name_that_no_tool_quotes(name: str) -> None:
    directory = layout.directory(name)
    assert len(directory.encode()) <= 100
    assert set(directory) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
    assert directory == name or directory[-13] == "-"


def test_a_month_ends_where_the_next_begins_also_at_new_year() -> None:
    assert layout.month_label(layout.month_end("2024-12")) == "2025-01"
    assert layout.month_end("2025-01") == layout.month_start("2025-02")
    for wrong in ("2024-13", "2024", "2024-1", "../x"):
        with pytest.raises(ValueError, match="is no month"):
            layout.month_start(wrong)


@given(PRINTS, PRINTS, PRINTS)
def test_fingerprints_of_parts_add_up_in_any_order_and_survive_a_property(
    one: Fingerprint, two: Fingerprint, three: Fingerprint
) -> None:
    assert one + two + three == three + (two + one)
    assert Fingerprint.from_json((one + two).as_json()) == one + two


def slice_of(run: str, start: int, until: int, rows: int = 1, *, sealed: bool = False) -> Slice:
    return Slice(run, "2025-01", (Part(start, until),), Fingerprint(rows=rows, sum=rows), sealed)


def test_a_table_remembers_what_it_has_in_properties_that_do_not_grow() -> None:
    slices = [slice_of(f"run-{n}", n, n + 1, n, sealed=n == 7) for n in range(60)]
    memory = Memory(cover(slices) | source_property("here") | run_property("nightly", "2025-01-02"))
    kept = memory.slices("2025-01")
    assert len(kept) == SLICES
    assert total(kept) == total(slices)
    assert covered(memory.parts("2025-01")) == [Part(0, 60)]
    # What was sealed may have been dropped: what came later is never put together with it.
    assert [each.parts for each in kept if each.sealed] == [(Part(0, 8),)]
    assert still_there(kept, total(slices[8:])) == kept[1:]
    assert (memory.labels, memory.source, memory.done("nightly"), memory.done("other")) == (
        ["2025-01"], "here", True, False,
    )  # fmt: skip
    many = Memory({name: at for n in range(RUNS) for name, at in run_property(f"r{n}", f"{n:04}").items()})
    assert many.old_runs() == ["menzil.run.r0"]


def test_a_column_of_another_type_is_refused() -> None:
    assert with_promoted(COLUMNS, [("p_new", "string")])["p_new"] == "string"
    with pytest.raises(LakeDamagedError, match="Column id"):
        with_promoted(COLUMNS, [("id", "string")])
    for name in (MESSAGES, EVENTS):
        assert spark_columns(iceberg(name)) == TABLES[name]


def rows(number: int, channels: str = "a") -> pa.Table:
    """Rows in order of their keys, as tasks get them."""
    keys = sorted(f"2025-01/{channels[n % len(channels)]}" for n in range(number))
    return pa.table({KEY: keys, "id": list(range(number)), "text": ["é" * 9] * number})


def test_a_writer_makes_a_file_per_key_and_none_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS", 7)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 3)
    shape = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}), ("text", pa.large_string())])
    hashed = ([("id", "number"), ("text", "text")], ())
    writer = parquet.Writer(parquet.Place(LocalFileSystem(), str(tmp_path), shape, ("id",), hashed))
    done = [*writer.take(rows(10)), *writer.take(rows(6, "ab")), *writer.end()]
    assert [(file.key, file.rows) for file in done] == [("2025-01/a", 7), ("2025-01/a", 6), ("2025-01/b", 3)]
    for file in done:
        assert (tmp_path / file.path).stat().st_size == file.size
        assert pickle.loads(pickle.dumps(file)).footer.num_rows == file.rows
        assert damage(LocalFileSystem(), file.path, file.size, file.rows, whole=True) is None
        assert (
            damage(LocalFileSystem(), file.path, file.size, file.rows + 1)
            == f"has {file.rows} rows, not {file.rows + 1}."
        )
    assert damage(LocalFileSystem(), str(tmp_path / "never"), 1, 1) == "is missing."


def test_columns_that_repeat_have_a_dictionary_and_those_that_do_not_have_none(tmp_path: Path) -> None:
    shape, tries = arrow(COLUMNS), [{"attempt": 1, "outcome": "completed"}]
    files = parquet.OpenFile(parquet.Place(LocalFileSystem(), str(tmp_path), shape, (), ([("id", "number")], ())), "k")
    values: dict[str, object] = {"id": 1, "channel": "a", "payload": "{}", "payload_hash": "b", "attempts": tries}
    values["created_at"] = datetime(2025, 1, 1, tzinfo=UTC)
    files.add(pa.Table.from_pylist([values] * 9, schema=shape))
    group = files.close().footer.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    without = {each.path_in_schema for each in columns if not each.has_dictionary_page}
    assert without == parquet.UNIQUE
    assert any(each.path_in_schema == "attempts.list.element.outcome" for each in columns)


def test_a_lake_of_menzil_0_1_is_named_as_such(tmp_path: Path) -> None:
    (tmp_path / "_manifest").mkdir()
    with pytest.raises(LakeError, match=r"menzil 0\.1"):
        open_lake(tmp_path)


def test_an_empty_lake_has_all_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = lake.read(spark, tmp_path)
    assert frame.columns == [*COLUMNS]
    assert frame.count() == 0


TIMES = st.none() | st.sampled_from([f"2025-01-0{day}T00:00:00.000000Z" for day in range(1, 6)])


@given(st.lists(st.tuples(st.integers(0, 4), TIMES), max_size=8))
def test_runs_with_any_bounds_export_every_row_once(runs: list[tuple[int, str | None]]) -> None:
    seen: list[tuple[int, str]] = []
    parts: list[Part] = []
    runs = [(sum(more for more, _ in runs[: n + 1]), top) for n, (_, top) in enumerate(runs)]
    for until, created_until in runs:
        new = missing(parts, until, created_until)
        assert not [1 for part in new for other in parts if part.meets(other)]
        parts += new
        for xid in range(33):
            for day in range(6):
                at = f"2025-01-0{day}T12:00:00.000000Z"
                seen += [(xid, at) for part in new if holds(part, xid, at)]
    assert len(seen) == len(set(seen))
    reached = [0, *[until for until, _ in runs]]
    for xid in range(max(reached)):
        tops = [created_until or "~" for until, created_until in runs if until > xid]
        for day in range(6):
            at = f"2025-01-0{day}T12:00:00.000000Z"
            assert ((xid, at) in seen) == any(at < top for top in tops)
            assert ((xid, at) in seen) == any(holds(part, xid, at) for part in covered(parts))


def holds(part: Part, xid: int, at: str) -> bool:
    return part.start <= xid < part.until and (part.created_from or "") <= at < (part.created_until or "~")


def test_ends_are_read_by_transaction_id_in_pieces_that_meet_and_only_of_the_archive() -> None:
    january, february = datetime(2025, 1, 1, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC)
    month = partitions.Month(7, "archive_2025_01", january, february, 9, 5000, 6000, True)
    pieces = list(partitions.of_ends(month, 5, "9", [("6", 60), ("8", 80)]))
    whole = "ended_xid >= '5'::xid8 and ended_xid < '9'::xid8 and lo_id > 904 and lo_id <= 6000"
    assert all(f"{month.condition} and {whole}" in str(piece.condition) for piece in pieces)
    assert [str(piece.condition).split(whole)[1] for piece in pieces] == [
        " and ended_xid <= '6'::xid8 and (ended_xid, id) <= ('6'::xid8, 60::bigint)",
        " and ended_xid >= '6'::xid8 and (ended_xid, id) > ('6'::xid8, 60::bigint)"
        " and ended_xid <= '8'::xid8 and (ended_xid, id) <= ('8'::xid8, 80::bigint)",
        " and ended_xid >= '8'::xid8 and (ended_xid, id) > ('8'::xid8, 80::bigint)",
    ]
    assert ReadOptions.of({"dsn": "dbname=x", "endedFrom": "18446744073709551615"}).ended_from == 2**64 - 1
    with pytest.raises(UsageError, match="dlq has no ends"):
        ReadOptions.of({"dsn": "x", "table": "dlq", "endedFrom": "5"})
    with pytest.raises(UsageError, match="endedFrom is 'x'"):
        ReadOptions.of({"dsn": "dbname=x", "endedFrom": "x"})


def test_a_lake_whose_name_java_cannot_write_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    named = tmp_path / "gr\udcf6\udcdfe"  # bytes of Latin-1, as Python reads them
    with pytest.raises(UsageError, match="names files in UTF-8, which has not all letters of") as refused:
        address(named, spark)
    assert "LC_ALL=C.UTF-8" in str(refused.value)
    assert not named.exists()
    for environ, added in (
        ({"LC_ALL": "C", "LANG": "de_DE.UTF-8"}, True),
        ({"LC_CTYPE": "POSIX"}, True),
        ({}, True),
        ({"LANG": "de_DE.UTF-8"}, False),
        ({"LC_ALL": "", "LC_CTYPE": "C.UTF-8"}, False),
    ):
        assert names_in_utf8(environ) == ({"LC_ALL": "C.UTF-8"} if added else {}), environ
