"""The catalog of the lake in the queue's database: who may do what, what it never tells, and a lake without it."""

from __future__ import annotations

import pickle
import threading
from contextlib import suppress
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from psycopg.conninfo import make_conninfo
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError

from menzil.install import drift, migrate
from menzil.install.script import script
from menzil.model.errors import MenzilError, UsageError
from menzil.ops.lake import table_pointer
from menzil.ops.run import run
from menzil.spark.lake.catalog import MESSAGES, NAME, NAMESPACE, kept, location, open_catalog, place
from menzil.spark.lake.errors import LakeDamagedError, LakeError
from menzil.spark.lake.hint import open_alone, write_hint
from menzil.spark.lake.place import storage_options
from menzil.spark.lake.register import register, replace
from tests.integration.lake.conftest import Lake
from tests.integration.lake.engines import COLUMNS, ROWS, make_tables
from tests.sql.clock import until

TABLE = (NAMESPACE, MESSAGES)


def test_the_catalog_knows_no_password(lake: Lake) -> None:
    with psycopg.connect(lake.dsn, autocommit=True) as conn:
        conn.execute("drop role if exists lake_reader")
        conn.execute("create role lake_reader login password 'open-sesame' in role menzil_pipeline")
    table = open_catalog(make_conninfo(lake.dsn, user="lake_reader", password="open-sesame")).load_table(TABLE)
    assert table.scan().count() == len(ROWS)
    assert "open-sesame" not in repr([table.io.properties, table.catalog.properties, table.metadata.properties])
    assert storage_options(dict(table.io.properties)) == {}
    assert b"open-sesame" not in pickle.dumps(table.io)
    with pytest.raises(TypeError, match="stays with the driver"):
        pickle.dumps(table.catalog)


def test_calls_that_belong_together_share_a_connection_that_may_be_closed_meanwhile(lake: Lake) -> None:
    catalog = open_catalog(make_conninfo(lake.dsn, application_name="menzil shared"))
    theirs = "select pid from pg_stat_activity where application_name = 'menzil shared'"
    with psycopg.connect(lake.dsn, autocommit=True) as conn:
        for _ in range(2):  # without a with block each has its own, which is gone afterwards
            assert catalog.load_table(TABLE).scan().count() == len(ROWS)
            until(lambda: not conn.execute(theirs).fetchall())
        with kept(catalog), kept(catalog):
            catalog.load_table(TABLE)
            ((first,),) = conn.execute(theirs).fetchall()
            with pytest.raises(NoSuchTableError):
                catalog.load_table((NAMESPACE, "nothing"))
            catalog.load_table(TABLE)
            assert conn.execute(theirs).fetchall() == [(first,)]
            conn.execute("select pg_terminate_backend(%s, 60000)", (first,))
            assert catalog.load_table(TABLE).scan().count() == len(ROWS)
            ((second,),) = conn.execute(theirs).fetchall()
            assert second != first
        until(lambda: not conn.execute(theirs).fetchall())


def test_credentials_of_the_store_reach_tasks_and_nothing_else_does(lake: Lake, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__MENZIL__S3__ACCESS_KEY_ID", "ada")
    monkeypatch.setenv("PYICEBERG_CATALOG__MENZIL__OTHER", "private")
    table = open_catalog(lake.dsn).load_table(TABLE)
    assert storage_options(dict(table.io.properties)) == {"s3.access-key-id": "ada"}
    monkeypatch.setenv("PYICEBERG_CATALOG__MENZIL__URI", "http://elsewhere")
    with pytest.raises(UsageError, match="gives it uri"):
        open_catalog(lake.dsn)
    with pytest.raises(UsageError, match="no catalog polaris") as caught:
        open_catalog(lake.dsn, "polaris")
    assert "menzil" in str(caught.value.hint)


def test_monitors_read_the_catalog_and_only_pipelines_write_it(lake: Lake) -> None:
    with psycopg.connect(lake.dsn, autocommit=True) as conn:
        for role in ("monitor", "worker"):
            conn.execute(f"drop role if exists lake_{role}")
            conn.execute(f"create role lake_{role} login password 'x' in role menzil_{role}")
    catalog = open_catalog(make_conninfo(lake.dsn, user="lake_monitor", password="x"))
    table = catalog.load_table(TABLE)
    assert table.scan().count() == len(ROWS)
    with pytest.raises(Exception, match="permission denied"):
        catalog.drop_table(TABLE)
    assert catalog.table_exists(TABLE)
    with pytest.raises(MenzilError, match="lake_worker may not read the catalog"):
        open_catalog(make_conninfo(lake.dsn, user="lake_worker", password="x"))


def test_a_database_without_a_catalog_says_so(fresh_db: str) -> None:
    with pytest.raises(MenzilError, match="has no catalog of a lake") as caught:
        open_catalog(fresh_db)
    assert "run `menzil migrate`" in str(caught.value.hint)


def test_a_commit_waits_while_the_pointer_is_held_and_a_moved_pointer_is_seen(db: str, tmp_path: Path) -> None:
    table = make_tables(open_catalog(db), str(tmp_path))
    proved, begun, done = table.metadata_location, threading.Event(), threading.Event()

    def commit() -> None:
        begun.set()
        table.append(pa.Table.from_pylist(ROWS[:1], schema=COLUMNS))
        done.set()

    with psycopg.connect(db, autocommit=True) as watch, psycopg.connect(db) as conn:
        assert run(conn, table_pointer(NAME, *TABLE, hold=True)) == proved
        other = threading.Thread(target=commit)
        other.start()
        assert begun.wait(30)
        waits = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        while watch.execute(waits).fetchone() == (0,):  # the test's own time limit ends this
            assert not done.is_set(), "the commit did not wait"
        assert run(conn, table_pointer(NAME, *TABLE)) == proved
        conn.commit()
        other.join(60)
        assert done.is_set()
        assert run(conn, table_pointer(NAME, *TABLE, hold=True)) == table.metadata_location != proved
        assert run(conn, table_pointer(NAME, NAMESPACE, "nothing", hold=True)) is None


def test_of_two_commits_on_the_same_base_one_is_refused(db: str, tmp_path: Path) -> None:
    first = make_tables(open_catalog(db), str(tmp_path))
    first.transaction().set_properties({"commit.retry.num-retries": "0"}).commit_transaction()
    second = open_catalog(db).load_table(TABLE)
    first.append(pa.Table.from_pylist(ROWS[:1], schema=COLUMNS))
    with pytest.raises(CommitFailedException):
        second.append(pa.Table.from_pylist(ROWS[:1], schema=COLUMNS))
    assert open_catalog(db).load_table(TABLE).scan().count() == len(ROWS) + 1


def test_a_lake_opens_without_its_database(lake: Lake) -> None:
    alone = open_alone(lake.path, MESSAGES)
    assert alone.metadata_location == lake.pointer
    assert alone.scan().count() == len(ROWS)
    with pytest.raises(LakeError, match="There is no table of a lake"):
        open_alone(lake.path, "nothing")


def test_a_hint_that_may_be_old_is_not_believed(db: str, tmp_path: Path) -> None:
    table = make_tables(open_catalog(db), str(tmp_path))
    table.append(pa.Table.from_pylist(ROWS[:1], schema=COLUMNS))  # and the process is killed before the hint
    with pytest.raises(LakeDamagedError, match="is later"):
        open_alone(str(tmp_path), MESSAGES)
    write_hint(table)
    assert open_alone(str(tmp_path), MESSAGES).scan().count() == len(ROWS) + 1
    (tmp_path / MESSAGES / "metadata" / "version-hint.text").write_text("")
    with pytest.raises(LakeDamagedError, match="names no metadata file"):
        open_alone(str(tmp_path), MESSAGES)


def test_a_new_database_learns_the_lake(lake: Lake, db: str, tmp_path: Path) -> None:
    catalog = open_catalog(db)
    assert register(catalog, lake.path)[MESSAGES] == lake.pointer
    assert register(catalog, lake.path)[MESSAGES] == lake.pointer  # twice is once
    assert catalog.load_table(TABLE).scan().count() == len(ROWS)
    other = tmp_path / "other"
    with pytest.raises(LakeError, match="no table of a lake"):
        register(catalog, str(other))
    with suppress(FileNotFoundError):
        (other / MESSAGES).mkdir(parents=True)
    with pytest.raises(UsageError, match="not a metadata file of this lake"):
        register(catalog, lake.path, "file:///elsewhere/x.metadata.json")


def test_another_lake_replaces_the_known_one_only_when_asked(lake: Lake, db: str, tmp_path: Path) -> None:
    catalog = open_catalog(db)
    own = make_tables(catalog, str(tmp_path)).metadata_location
    with pytest.raises(LakeError, match="The catalog has"):
        register(catalog, lake.path)
    assert catalog.load_table(TABLE).metadata_location == own
    with psycopg.connect(db, autocommit=True) as conn:
        replace(catalog, conn, lake.path)
    assert catalog.load_table(TABLE).metadata_location == lake.pointer


def test_a_moved_lake_is_refused(lake: Lake, db: str, tmp_path: Path) -> None:
    Path(lake.path, MESSAGES).rename(tmp_path / MESSAGES)
    try:
        with pytest.raises(LakeError, match="lie in file://"):
            register(open_catalog(db), str(tmp_path))
    finally:
        (tmp_path / MESSAGES).rename(Path(lake.path, MESSAGES))


def test_one_place_has_one_spelling(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        place("lake/") == place(str(tmp_path / "lake")) == place(f"file://{tmp_path}/lake") == f"file://{tmp_path}/lake"
    )
    assert location("s3://bucket/lake/", MESSAGES) == "s3://bucket/lake/messages"
    for odd in ("file://host/lake", "file:lake", "a#b", "50%"):
        with pytest.raises(UsageError):
            place(odd)


def test_the_catalog_is_missed_when_it_is_gone_and_leaves_with_the_queue(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("alter table menzil_lake.iceberg_tables drop column iceberg_type")
        conn.execute("drop table menzil_lake.iceberg_namespace_properties")
        assert [(one.name, one.what) for one in drift(conn)] == [
            ("menzil_lake.iceberg_tables", "changed"),
            ("menzil_lake.iceberg_namespace_properties", "missing"),
        ]
        conn.execute(script("uninstall"))
        assert conn.execute("select count(*) from pg_namespace where nspname like 'menzil%'").fetchone() == (0,)
    migrate(db)
    assert open_catalog(db).list_namespaces() == [(NAMESPACE,)]
