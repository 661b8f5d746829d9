"""What an export wrote, read by four engines: the same count and the same sum of hashes as the database has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from menzil.console import Access
from menzil.console.catalog_app import CatalogApp
from menzil.embedded import Embedded
from menzil.spark.lake.catalog import NAMESPACE, open_catalog
from tests.conftest import database
from tests.console.seat import served
from tests.integration.lake.engines import duck
from tests.spark.lake_history import event_lines, fill, in_database
from tests.spark.readers import counted, filled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]


@dataclass
class Exported:
    """A database with an odd history, and the lake that has it."""

    spark: SparkSession
    dsn: str
    path: Path
    port: int

    def expected(self, table: str) -> Rows:
        return list((in_database if table == "messages" else event_lines)(self.dsn).values())


@pytest.fixture(scope="module")
def exported(
    server: Embedded, _installed: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Exported]:
    from menzil.spark.jobs.export import export

    path = tmp_path_factory.mktemp("readers") / "lake"
    with database(server, "lake_readers", _installed) as dsn:
        fill(dsn)
        export(spark, dsn, path)
        with served(CatalogApp(dsn, local=Access.viewer("ada"))) as seat:
            yield Exported(spark, dsn, path, seat.port)


def by_pyiceberg(lake: Exported, table: str) -> Rows:
    found: Rows = open_catalog(lake.dsn).load_table((NAMESPACE, table)).scan().to_arrow().to_pylist()
    return found


def by_duckdb(lake: Exported, table: str) -> Rows:
    conn = duck()
    where = f"type iceberg, endpoint 'http://127.0.0.1:{lake.port}', authorization_type 'none'"
    conn.execute(f"attach 'lake' as lake ({where})")
    found: Rows = conn.execute(f"select * from lake.{NAMESPACE}.{table}").to_arrow_table().to_pylist()
    return found


def by_polars(lake: Exported, table: str) -> Rows:
    import polars

    found: Rows = (
        polars.scan_iceberg(open_catalog(lake.dsn).load_table((NAMESPACE, table))).collect().to_arrow().to_pylist()
    )
    return found


def by_spark(lake: Exported, table: str) -> Rows:
    from menzil.spark import lake as spark_lake

    frame = (spark_lake.read if table == "messages" else spark_lake.events)(lake.spark, lake.path, lake.dsn)
    assert frame is not None
    found: Rows = frame.toArrow().to_pylist()
    return found


READERS = [by_pyiceberg, by_duckdb, by_polars, by_spark]


@pytest.mark.parametrize("table", ["messages", "events"])
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_every_engine_counts_and_hashes_what_the_database_has(
    exported: Exported, read: Callable[[Exported, str], Rows], table: str
) -> None:
    expected, found = exported.expected(table), read(exported, table)
    names = list(expected[0])
    assert filled(found, names) == filled(expected, names)
    assert counted(found, names) == counted(expected, names)
    assert counted(found[1:], names) != counted(expected, names)
