"""A lake in an object store, with what pip brings and no jar: export, verify, replay, and what travels to tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from pyarrow.fs import FileSelector
from pyarrow.parquet import ParquetFile

from menzil.embedded import Embedded
from menzil.spark import lake
from menzil.spark.lake.catalog import NAMESPACE, open_catalog
from menzil.spark.lake.hint import open_alone
from tests.conftest import database
from tests.integration.lake.engines import duck
from tests.spark import object_store
from tests.spark.lake_history import fill, in_database
from tests.spark.object_store import KEY, SECRET, Store
from tests.spark.readers import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@dataclass
class Exported:
    """A database, a store and a lake in it; `sent` is all that the driver pickled for tasks meanwhile."""

    dsn: str
    store: Store
    path: str
    sent: list[bytes]


@pytest.fixture(scope="module")
def exported(
    server: Embedded, _installed: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Exported]:
    from menzil.spark.jobs.export import export

    log = tmp_path_factory.mktemp("moto") / "log"
    with (
        object_store.running(log) as store,
        database(server, "lake_in_a_store", _installed) as dsn,
        pytest.MonkeyPatch.context() as patch,
    ):
        store.configure(patch)
        sent = watch(patch)
        fill(dsn)
        path = f"s3://{store.bucket}/a lake"
        export(spark, dsn, path, run_id="first")
        yield Exported(dsn, store, path, sent)


def watch(patch: pytest.MonkeyPatch) -> list[bytes]:
    """Keep what PySpark pickles for its workers: functions with all that they hold on to."""
    from pyspark.serializers import CloudPickleSerializer

    sent: list[bytes] = []
    dumps = CloudPickleSerializer.dumps

    def kept(self: Any, obj: Any) -> bytes:
        data: bytes = dumps(self, obj)
        sent.append(data)
        return data

    patch.setattr(CloudPickleSerializer, "dumps", kept)
    return sent


def test_a_lake_in_an_object_store_has_every_value(spark: SparkSession, exported: Exported) -> None:
    expected = list(in_database(exported.dsn).values())
    names = list(expected[0])
    rows = lake.read(spark, exported.path, exported.dsn).toArrow().to_pylist()
    assert counted(rows, names) == counted(expected, names)
    table = open_catalog(exported.dsn).load_table((NAMESPACE, "messages"))
    assert counted(table.scan().to_arrow().to_pylist(), names) == counted(expected, names)
    assert open_alone(exported.path, "messages", table.io.properties).metadata_location == table.metadata_location


def test_verify_finds_nothing_and_then_the_file_that_was_damaged(spark: SparkSession, exported: Exported) -> None:
    checked = lake.verify(exported.path, exported.dsn, spark=spark)
    assert (checked.problems, checked.rows) == ((), len(in_database(exported.dsn)))
    files = exported.store.files()
    victim = lake.files(exported.path, exported.dsn)[0].removeprefix("s3://")
    with files.open_input_stream(victim) as stream:
        whole = stream.read()
    for broken in (None, with_other_payloads(whole)):
        if broken is None:
            files.delete_file(victim)
        else:
            put(exported.store, victim, broken)
        assert lake.verify(exported.path, exported.dsn, spark=spark).problems
        put(exported.store, victim, whole)
    assert lake.verify(exported.path, exported.dsn, spark=spark).problems == ()


def with_other_payloads(whole: bytes) -> bytes:
    """The file with the end of its payloads changed. A bit anywhere may be one of a header, which changes no value."""
    columns = ParquetFile(BytesIO(whole)).metadata.row_group(0)
    payload = next(
        column
        for column in (columns.column(number) for number in range(columns.num_columns))
        if column.path_in_schema == "payload"
    )
    end = (payload.dictionary_page_offset or payload.data_page_offset) + payload.total_compressed_size
    return whole[: end - 16] + bytes(each ^ 1 for each in whole[end - 16 : end]) + whole[end:]


def put(store: Store, path: str, data: bytes) -> None:
    with store.files().open_output_stream(path) as stream:
        stream.write(data)


def test_messages_of_an_object_store_are_sent_once_more_and_once(spark: SparkSession, exported: Exported) -> None:
    from menzil.spark.jobs.replay import replay

    # The history was made by hand: half of it no send would have accepted.
    sendable = "metadata is null and coalesce(ordering_key, 'x') <> '' and (payload is null or content is null)"
    words = {"run_id": "again", "endpoint": "partner", "where": sendable}
    reports = [replay(spark, exported.dsn, exported.path, **words) for _ in range(2)]
    chosen = [
        row for row in in_database(exported.dsn).values()
        if row["channel"] == "partner" and row["metadata"] is None and row["ordering_key"] != ""
        and (row["payload"] is None or row["content"] is None)
    ]  # fmt: skip
    assert [report.repeated for report in reports] == [False, True]
    with psycopg.connect(exported.dsn) as conn:
        sent = conn.execute("select payload from menzil.queue where channel = 'partner'").fetchall()
    assert len(sent) == len(chosen) > 0
    assert sorted(json.dumps(row[0], sort_keys=True) for row in sent if row[0]) == sorted(
        json.dumps(json.loads(row["payload"]), sort_keys=True) for row in chosen if row["payload"]
    )


def test_tasks_get_the_credentials_of_the_store_and_not_the_password(exported: Exported) -> None:
    password = conninfo_to_dict(exported.dsn)["password"].encode()
    of_the_lake = [data for data in exported.sent if SECRET.encode() in data]
    assert of_the_lake, "nothing that reads or writes the store was seen"
    assert not [data for data in of_the_lake if password in data]


def test_no_secret_lies_in_the_store(exported: Exported) -> None:
    files = exported.store.files()
    password = conninfo_to_dict(exported.dsn)["password"].encode()
    found = [info for info in files.get_file_info(FileSelector(exported.store.bucket, recursive=True)) if info.is_file]
    assert any(info.path.endswith(".parquet") for info in found)
    for info in found:
        with files.open_input_stream(info.path) as stream:
            data = stream.read()
        assert not [secret for secret in (password, SECRET.encode(), KEY.encode()) if secret in data], info.path


def test_duckdb_reads_the_object_store_by_itself(exported: Exported) -> None:
    conn = duck()
    conn.execute(
        f"create secret (type s3, key_id '{KEY}', secret '{SECRET}', endpoint '127.0.0.1:{exported.store.port}',"
        " url_style 'path', use_ssl false, region 'us-east-1')"
    )
    pointer = open_catalog(exported.dsn).load_table((NAMESPACE, "messages")).metadata_location
    found = conn.execute(f"select count(*), count(distinct id) from iceberg_scan('{pointer}')").fetchone()
    assert found == (len(in_database(exported.dsn)),) * 2
