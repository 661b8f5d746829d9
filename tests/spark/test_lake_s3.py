"""A lake in an object store, with what pip brings: no jar, and tasks that know the store but not the database."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from moto.server import ThreadedMotoServer
from psycopg.conninfo import conninfo_to_dict
from pyarrow.fs import FileSelector, S3FileSystem
from pyspark.sql import SparkSession

from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.jobs.replay import replay
from menzil.spark.lake.place import file_system
from menzil.spark.lake.table import open_lake
from tests.spark.lake_history import DECEMBER, JANUARY, archived, event_lines, fill, in_database, in_lake, lines_in_lake

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small")]

PLACE = "s3://history/of/menzil"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3FileSystem]:
    """A real S3 server of this process; pyiceberg reads from the environment how to reach it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    said = {"endpoint": f"http://{host}:{port}", "access-key-id": "key", "secret-access-key": "word", "region": "x"}
    for name, value in said.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__MENZIL__S3__{name.upper().replace('-', '_')}", value)
    files = S3FileSystem(
        access_key="key", secret_key="word", region="x", endpoint_override=f"{host}:{port}", scheme="http",
        allow_bucket_creation=True,
    )  # fmt: skip
    files.create_dir("history")
    yield files
    server.stop()


def test_export_verify_compact_drop_and_replay_work_in_an_object_store(
    spark: SparkSession, db: str, store: S3FileSystem
) -> None:
    fill(db, 1, 12)
    export(spark, db, PLACE)
    fill(db, 13, 16)
    assert export(spark, db, PLACE).rows == 4
    whole = in_database(db)
    assert in_lake(spark, PLACE) == whole
    assert lines_in_lake(spark, PLACE) == event_lines(db)
    assert lake.verify(PLACE, db, spark=spark).problems == ()
    assert lake.compact(spark, PLACE, db).before > 0
    assert lake.sweep(PLACE, db, keep=timedelta(0), orphaned=timedelta(0)).removed > 0
    assert export(spark, db, PLACE, drop=True).dropped == [DECEMBER, JANUARY]
    assert archived(db) == 0
    assert in_lake(spark, PLACE) == whole, "from the store alone"
    with psycopg.connect(db) as conn:
        conn.execute("select menzil.channel_set('partner')")
    sent = replay(spark, db, PLACE, run_id="again", endpoint="partner")
    assert sent.messages == sum(row["channel"] == "partner" for row in whole.values())

    named = {path.removeprefix("s3://") for path in lake.files(PLACE)}
    there = store.get_file_info(FileSelector("history/of/menzil/messages/data", recursive=True))
    assert {info.path for info in there if info.is_file} == named
    store.delete_file(sorted(named)[0])
    assert "is missing" in lake.verify(PLACE, spark=spark).problems[0]
    # What travels to tasks: the keys of the store, and not the password of the database.
    given = open_lake(PLACE, db)
    travels = pickle.dumps(file_system(given.root, given.options))
    assert b"word" in travels
    assert conninfo_to_dict(db)["password"].encode() not in travels
