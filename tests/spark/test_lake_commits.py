"""Commits to the lake, without Spark: whole or not at all, whoever comes in between, and killed at any moment of it."""

from __future__ import annotations

import os
import random
import select
import signal
import time
import traceback
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg.conninfo import conninfo_to_dict
from pyiceberg.expressions import AlwaysTrue

from menzil.spark import lake as lakes
from menzil.spark.jobs.export_drop import tag
from menzil.spark.lake import LakeForeignError, commit, where
from menzil.spark.lake.cover import Part, covered
from menzil.spark.lake.place import file_system, storage_options
from menzil.spark.lake.read import data_files
from menzil.spark.lake.schema import MESSAGES
from menzil.spark.lake.suspect import suspects
from menzil.spark.lake.table import Lake, open_for_writing, open_lake
from menzil.spark.parquet.proof import KEY
from tests.spark.lake_files import begun, finish, written

AT, MONTH = datetime(2025, 3, 31, 23, 59, 59, 999999, tzinfo=UTC), "2025-03"


def ids(lake: Lake) -> list[int]:
    table = lake.tables[MESSAGES]
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


def opened(place: Path, dsn: str) -> Lake:
    return open_for_writing(place, dsn)[0]


def test_of_two_commits_on_one_base_the_second_is_refused_and_changes_nothing(db: str, tmp_path: Path) -> None:
    one = opened(tmp_path, db)
    tx = begun(one)
    two = opened(tmp_path, db)
    other = begun(two)
    files = [written(each, each_tx, "work", [1, 2], AT) for each, each_tx in ((one, tx), (two, other))]
    finish(one, tx, files[0], "a", Part(0, 5), MONTH)
    with pytest.raises(commit.CONFLICT):
        finish(two, other, files[1], "b", Part(0, 5), MONTH)
    for lake in (open_lake(tmp_path, db), open_lake(tmp_path)):
        assert ids(lake) == [1, 2]
        assert [each.run for each in lake.memory(MESSAGES).slices(MONTH)] == ["a"]
    # With pyiceberg's default both would land.
    assert one.tables[MESSAGES].properties["commit.retry.num-retries"] == "0"


def test_a_month_and_a_channel_are_found_by_the_metadata_alone(db: str, tmp_path: Path) -> None:
    lake = opened(tmp_path, db)
    for number, (channel, at) in enumerate([("a", AT), ("b", AT), ("a", AT + timedelta(microseconds=1))]):
        tx = begun(lake)
        finish(lake, tx, written(lake, tx, channel, [number], at), f"r{number}", Part(number, number + 1), MONTH)
    lake.refresh(MESSAGES)
    assert [file.partition[0] for file in data_files(lake, MESSAGES)].count(2 + 12 * 55) == 2
    assert len(data_files(lake, MESSAGES, where.in_months([MONTH]))) == 2
    assert len(data_files(lake, MESSAGES, where.one_of("channel", ["b"]))) == 1
    assert len(data_files(lake, MESSAGES, AlwaysTrue())) == 3
    assert covered(lake.memory(MESSAGES).parts(MONTH)) == [Part(0, 3)]


def test_a_file_that_is_not_the_committed_one_is_named_with_what_it_should_have(db: str, tmp_path: Path) -> None:
    lake = opened(tmp_path, db)
    tx = begun(lake)
    sound, victim, other = (written(lake, tx, "work", ids, AT)[0] for ids in ([1, 2], [3, 4], [5, 6]))
    added = commit.data_files(tx, [sound, victim], lake.root)
    commit.finish(lake, MESSAGES, tx, added, {}, summary={"menzil.run": "r"})
    files = data_files(lake, MESSAGES)
    assert suspects(lake, MESSAGES, files) == []
    Path(victim.path).write_bytes(Path(other.path).read_bytes())
    told = f"{victim.path} is another file than the one that was committed: its lowest id is 5, not 3."
    assert suspects(lake, MESSAGES, files) == [told]


def test_a_file_in_which_one_value_was_changed_is_named_though_its_bounds_are_the_same(db: str, tmp_path: Path) -> None:
    lake = opened(tmp_path, db)
    tx = begun(lake)
    sound, victim = (written(lake, tx, "work", ids, AT)[0] for ids in ([1, 2], [3, 4]))
    added = commit.data_files(tx, [sound, victim], lake.root)
    commit.finish(lake, MESSAGES, tx, added, {}, summary={"menzil.run": "r"})
    files = data_files(lake, MESSAGES)
    assert suspects(lake, MESSAGES, files) == []
    changed(victim.path, "worker", ["another", "another"])
    (told,) = suspects(lake, MESSAGES, files)
    assert told.startswith(f"{victim.path} holds other rows than were written to it: sum is ")
    # Lakes of before have files without a fingerprint.
    changed(victim.path, "worker", ["another", "another"], footer=False)
    assert suspects(lake, MESSAGES, files) == []


def changed(path: str, column: str, values: list[str], *, footer: bool = True) -> None:
    """Write a file anew with other values of a column, as an editor of Parquet files would."""
    table = pq.read_table(path)
    table = table.set_column(table.schema.names.index(column), table.schema.field(column), pa.array(values))
    said = pq.read_metadata(path).metadata if footer else {}
    pq.write_table(table.replace_schema_metadata({key: said[key] for key in said if key == KEY}), path)


def test_properties_and_a_tag_outlive_the_snapshots_and_the_sweep_takes_only_what_nothing_names(
    db: str, tmp_path: Path
) -> None:
    lake = opened(tmp_path, db)
    for number in range(4):
        tx = begun(lake)
        finish(lake, tx, written(lake, tx, "a", [number], AT), f"r{number}", Part(number, number + 1), MONTH)
        if number == 1:
            commit.remember(lake, MESSAGES, {}, tag=tag(MONTH))
    orphan = written(lake, begun(lake), "a", [9], AT)[0]
    assert lakes.sweep(tmp_path, db).removed == 0, "young files may belong to a run"
    swept = lakes.sweep(tmp_path, db, keep=timedelta(0), orphaned=timedelta(0))
    assert swept.snapshots == 2
    assert not Path(orphan.path).exists()
    lake = open_lake(tmp_path)
    assert ids(lake) == [0, 1, 2, 3]
    assert [each.run for each in lake.memory(MESSAGES).slices(MONTH)] == ["r0", "r1", "r2", "r3"]
    assert len(data_files(lake, MESSAGES, snapshot=tag(MONTH))) == 2
    assert lakes.sweep(tmp_path, db, keep=timedelta(0), orphaned=timedelta(0)).snapshots == 0


def test_a_lake_that_is_newer_than_its_catalog_is_not_written_to(db: str, tmp_path: Path) -> None:
    lake = opened(tmp_path, db)
    tx = begun(lake)
    finish(lake, tx, written(lake, tx, "a", [1], AT), "r", Part(0, 1), MONTH)
    before = (tmp_path / "messages" / "metadata" / "version-hint.text").read_text()
    tx = begun(lake)
    finish(lake, tx, written(lake, tx, "a", [2], AT), "s", Part(1, 2), MONTH)
    set_back(db, before)
    with pytest.raises(LakeForeignError, match="newer than the catalog"):
        open_for_writing(tmp_path, db)
    assert ids(open_lake(tmp_path)) == [1, 2]


def set_back(dsn: str, name: str) -> None:
    """As a restore of the database to an earlier time does."""
    import psycopg

    with psycopg.connect(dsn) as conn:
        conn.execute(
            "update menzil_lake.iceberg_tables set metadata_location = regexp_replace(metadata_location, '[^/]+$', %s)",
            (f"{name}.metadata.json",),
        )


def test_two_lakes_of_one_database_do_not_meet_and_tasks_get_no_password(db: str, tmp_path: Path) -> None:
    for place in ("one", "two"):
        lake = opened(tmp_path / place, db)
        tx = begun(lake)
        finish(lake, tx, written(lake, tx, "a", [len(place)], AT), "r", Part(0, 1), MONTH)
        assert ids(opened(tmp_path / place, db)) == ids(open_lake(tmp_path / place)) == [len(place)]
        password = conninfo_to_dict(db)["password"]
        assert password not in repr(lake.options)
        assert storage_options({"uri": f"postgresql://x:{password}@h", "s3.region": "x"}) == {"s3.region": "x"}
        assert file_system(lake.root, lake.options).type_name == "local"
    assert opened(tmp_path / "two", db).namespace != opened(tmp_path / "one", db).namespace == "menzil"


@pytest.mark.parametrize(
    "kills", [pytest.param(4, id="a few"), pytest.param(40, marks=[pytest.mark.torture, pytest.mark.timeout(3600)])]
)
def test_a_committer_killed_at_any_moment_of_its_commit_leaves_the_table_whole(
    db: str, tmp_path: Path, kills: int
) -> None:
    seed = int(os.environ.get("MENZIL_LAKE_SEED", random.randrange(1 << 32)))
    print(f"MENZIL_LAKE_SEED={seed}")
    moments = random.Random(seed)
    length = committed(db, tmp_path, 0, 60.0)
    assert len(ids(open_lake(tmp_path, db))) == 30
    landed = 0
    for number in range(1, kills + 1):
        committed(db, tmp_path, number, moments.uniform(0.0, length))
        lake = open_lake(tmp_path, db)
        mine = [each for each in lake.memory(MESSAGES).slices(MONTH) if each.run == f"run-{number}"]
        count = lake.tables[MESSAGES].scan(row_filter=f"channel == 'c{number}'").count()
        assert (count, len(mine)) in ((0, 0), (30, 1)), f"after {number} kills"
        landed += len(mine)
        assert len(ids(open_lake(tmp_path))) % 30 == 0, "the hint names a whole state, of now or of a moment before"
        if number % 2:  # the same run again, to its end
            committed(db, tmp_path, number, 60.0)
            assert open_lake(tmp_path, db).tables[MESSAGES].scan(row_filter=f"channel == 'c{number}'").count() == 30
    print(f"{landed} of {kills} had landed")
    lake = opened(tmp_path, db)
    parts = lake.memory(MESSAGES).parts(MONTH)  # slices above twenty are put together
    assert len(ids(lake)) == 30 * sum(part.until - part.start for part in parts)
    assert ids(open_lake(tmp_path)) == ids(lake), "whoever writes next brings the hint up to date"


def committed(dsn: str, place: Path, number: int, patience: float) -> float:
    """A process that commits, killed so long after it has begun to; how long it took."""
    ready, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            commit_once(dsn, place, number, go)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(go)
    with os.fdopen(ready, "rb") as told:
        told.read(1)
    began = time.monotonic()
    end = os.pidfd_open(child)
    select.select([end], [], [], patience)
    os.kill(child, signal.SIGKILL)  # not waited for yet, so the number is still its own
    _, status = os.waitpid(child, 0)
    os.close(end)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return time.monotonic() - began


def commit_once(dsn: str, place: Path, number: int, go: int) -> None:
    lake = opened(place, dsn)
    tx = begun(lake)
    if any(each.run == f"run-{number}" for each in lake.memory(MESSAGES).slices(MONTH)):
        return
    files = [each for n in range(3) for each in written(lake, tx, f"c{number}", range(10 * n, 10 * n + 10), AT)]
    os.write(go, b".")
    finish(lake, tx, files, f"run-{number}", Part(number, number + 1), MONTH)
