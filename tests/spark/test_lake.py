"""The lake without a database: names, fingerprints that add up, manifests in order, and the two kinds of storage."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.lake import LakeDamagedError, LakeError, layout, publish
from menzil.spark.lake.fingerprint import Fingerprint
from menzil.spark.lake.hadoop import HadoopStorage
from menzil.spark.lake.manifest import File, Manifest, Slice, State
from menzil.spark.lake.schema import COLUMNS, union
from menzil.spark.lake.storage import LocalStorage, Storage

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
    part = Slice(run, "2025-01", start, until, Fingerprint.total(each.fingerprint for each in files))
    return Manifest("export", run, "2025-01", publish.now(), files, slice=part)


def test_a_reader_takes_what_is_named_and_not_replaced() -> None:
    one, two, both = file("one"), file("two"), file("both", 2)
    rewritten = Manifest("compact", "c", "2025-01", publish.now(), (both,), (one.path, two.path))
    manifests = [exported("a", 0, 5, one), exported("b", 5, 9, two), rewritten]
    manifests = [Manifest.decode(manifest.encode()) for manifest in manifests]
    state = State.of(enumerate(manifests, 1))
    assert list(state.files) == [both.path]
    assert set(state.replaced) == {one.path, two.path}
    assert state.watermark("2025-01") == 9
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
    sources = [f"{layout.work(manifest.run, '2025-01')}/rows/{number}" for number, _ in enumerate(manifest.files)]
    for source in sources:
        storage.put(source, b"PAR1")
    return publish.prepare(storage, manifest, sources)


def test_a_prepared_step_is_finished_by_whoever_comes_next_and_an_unprepared_one_is_not(storage: Storage) -> None:
    prepared(storage, exported("a", 0, 5, file("one"), file("two")))
    storage.put(f"{layout.work('b', '2025-01')}/rows/0", b"half")
    publish.recover(storage, "b")
    assert set(publish.load(storage).files) == {"data/one", "data/two"}
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
    state = publish.load(LocalStorage(str(tmp_path)))
    assert state.number == 8
    assert state.steps == {("run", f"run-{number}", None) for number in range(8)}


def test_an_empty_lake_has_all_columns_and_no_rows(spark: SparkSession, tmp_path: Path) -> None:
    frame = lake.read(spark, tmp_path)
    assert frame.columns == [*COLUMNS, "year", "month", "endpoint"]
    assert frame.count() == 0
