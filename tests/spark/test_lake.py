"""The lake without a database: names, fingerprints that add up, manifests in order, and the two kinds of storage."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from menzil.model.errors import UsageError
from menzil.spark import lake
from menzil.spark.lake import LakeDamagedError, LakeError, layout, publish
from menzil.spark.lake.cover import Part, covered, missing
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.hadoop import HadoopStorage
from menzil.spark.lake.load import EVERY, load
from menzil.spark.lake.manifest import File, Manifest, Slice
from menzil.spark.lake.schema import COLUMNS, union
from menzil.spark.lake.state import State
from menzil.spark.lake.storage import LocalStorage, Storage, open_storage
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
def test_fingerprints_of_parts_add_up_in_any_order_and_survive_a_manifest(
    one: Fingerprint, two: Fingerprint, three: Fingerprint
) -> None:
    assert one + two + three == three + (two + one)
    assert Fingerprint.from_json((one + two).as_json()) == one + two


def file(name: str, rows: int = 1) -> File:
    return File(f"data/{name}", "2025-01", "e", 4, Fingerprint(rows=rows))


def exported(run: str, start: int, until: int, *files: File) -> Manifest:
    part = Slice(run, "2025-01", (Part(start, until),), Fingerprint.total(each.fingerprint for each in files))
    return Manifest("export", run, "2025-01", publish.now(), files, slice=part)


def test_a_reader_takes_what_is_named_and_not_replaced() -> None:
    one, two, both = file("one"), file("two"), file("both", 2)
    rewritten = Manifest("compact", "c", "2025-01", publish.now(), (both,), (one.path, two.path))
    manifests = [exported("a", 0, 5, one), exported("b", 5, 9, two), rewritten]
    manifests = [Manifest.decode(manifest.encode()) for manifest in manifests]
    state = State.of(enumerate(manifests, 1))
    assert list(state.messages.files) == [both.path]
    assert set(state.replaced) == {one.path, two.path}
    assert covered(state.messages.parts("2025-01")) == [Part(0, 9)]
    assert State.decode(state.encode()) == state
    assert not state.fits(exported("late", 5, 9, two)), "somebody exported these already"
    assert not state.fits(Manifest("compact", "d", "2025-01", "", (), (one.path,))), "somebody replaced it already"


def test_a_lake_of_a_later_format_or_with_another_type_is_refused() -> None:
    text = exported("a", 0, 5).encode().replace(b'"format": 1', b'"format": 2')
    with pytest.raises(LakeError, match="format 2"):
        Manifest.decode(text)
    assert union([{"new": "string"}])["new"] == "string"
    with pytest.raises(LakeDamagedError, match="Column id"):
        union([{**COLUMNS, "id": "string"}])


@pytest.fixture(params=["local", "hadoop"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return LocalStorage(str(tmp_path))
    return HadoopStorage(f"file://{tmp_path}", request.getfixturevalue("spark"))


def test_both_kinds_of_storage_do_the_same(storage: Storage) -> None:
    assert storage.list("nowhere") == []
    assert storage.put("a/b.json", b"one")
    assert not storage.put("a/b.json", b"two"), "what is there is not replaced"
    assert storage.read("a/b.json") == b"one"
    assert storage.size("a/b.json") == 3
    assert storage.size("a/c.json") is None
    storage.move("a/b.json", "x/y/b.json")
    storage.move("a/b.json", "x/y/b.json")  # again is fine
    assert [(found.path, found.size) for found in storage.list("x")] == [("x/y/b.json", 3)]
    with pytest.raises(LakeDamagedError, match="is gone"):
        storage.move("a/never", "x/never")
    storage.remove("x")
    storage.remove("x")
    assert storage.list("x") == []


def prepared(storage: Storage, manifest: Manifest) -> str:
    place = layout.work(manifest.run, "2025-01")
    sources = [f"{place}/rows/{number}" for number, _ in enumerate(manifest.files)]
    for source in sources:
        storage.put(source, b"PAR1")
    publish.prepare(storage, place, manifest, sources)
    return place


def test_a_prepared_step_is_finished_by_whoever_comes_next_and_an_unprepared_one_is_not(storage: Storage) -> None:
    prepared(storage, exported("a", 0, 5, file("one"), file("two")))
    storage.put(f"{layout.work('b', '2025-01')}/rows/0", b"half")
    publish.recover(storage, "b")
    assert set(load(storage).messages.files) == {"data/one", "data/two"}
    assert storage.list(layout.WORK) == []
    assert {found.path for found in storage.list(layout.DATA)} == {"data/one", "data/two"}


def test_of_two_exports_of_the_same_messages_one_counts_and_the_other_leaves_nothing(storage: Storage) -> None:
    first, second = exported("a", 0, 5, file("one")), exported("b", 0, 7, file("two"))
    places = [prepared(storage, first), prepared(storage, second)]
    assert publish.finish(storage, places[0])
    assert not publish.finish(storage, places[1])
    assert [found.path for found in storage.list(layout.DATA)] == ["data/one"]


def test_writers_at_the_same_time_each_get_a_number_of_their_own(tmp_path: Path) -> None:
    def work(name: str) -> None:
        assert publish.put(LocalStorage(str(tmp_path)), Manifest("run", name, None, publish.now()))

    threads = [threading.Thread(target=work, args=(f"run-{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    state = load(LocalStorage(str(tmp_path)))
    assert state.number == 8
    assert state.steps == {("run", f"run-{number}", None) for number in range(8)}


def test_an_empty_lake_has_all_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = lake.read(spark, tmp_path)
    assert frame.columns == [*COLUMNS, "year", "month", "endpoint"]
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


class Counting(LocalStorage):
    """Counts the files that are read."""

    reads = 0

    def read(self, path: str) -> bytes:
        self.reads += 1
        return super().read(path)


def test_a_lake_of_a_thousand_steps_is_opened_with_few_reads(tmp_path: Path) -> None:
    storage = Counting(str(tmp_path))
    for number in range(3 * EVERY - 2):
        publish.put(storage, Manifest("run", f"run-{number}", None, publish.now()))
    storage.reads = 0
    state = load(storage)
    assert (state.number, len(state.steps)) == (3 * EVERY - 2, 3 * EVERY - 2)
    assert storage.reads == EVERY - 1, "the checkpoint and what came after it"
    assert load(storage, checkpoints=False) == state

    latest = tmp_path / layout.checkpoint(2 * EVERY)
    latest.write_bytes(latest.read_bytes()[:99])  # a disk that lost the rest
    assert load(storage) == state
    changed = State.of([])
    changed.number = 2 * EVERY
    latest.write_bytes(changed.encode())
    assert lake.verify(tmp_path).problems == ("A checkpoint says other than the manifests.",)


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
        open_storage(named, spark)
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
