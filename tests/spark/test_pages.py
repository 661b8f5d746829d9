"""Blocks of pages that need Spark do what they say, in the one session of the tests, over one lake."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

import menzil
from menzil.console import Access
from menzil.console.catalog_app import CatalogApp
from menzil.embedded import Embedded
from tests.conftest import database
from tests.console.seat import served
from tests.docs.blocks import PAGES, ROOT, Block, shell_lines, with_spark
from tests.docs.running import Run
from tests.integration.lake.engines import duck
from tests.spark import archiving
from tests.sql.clock import until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

RUN = {str(page.relative_to(ROOT)): page for page in PAGES if with_spark(page)}
#: 1,200 messages of one day to billing, of which twelve were tried twice, and a hundred to partner.
_COLUMNS = """id, status, channel, priority, num_attempts, retry_count, created_at, first_leased_at, leased_at,
  ended_at, ended_xid, payload"""
_ROWS = """
select g, 'completed', case when g <= 1200 then 'billing' else 'partner' end, 0, 1 + again, again, at,
       at + interval '1 ms', at + again * interval '1 s' + interval '1 ms',
       at + again * interval '1 s' + interval '9 ms', pg_current_xact_id(), jsonb_build_object('order', g)
  from generate_series(1, 1300) g
 cross join lateral (
   select timestamptz '2026-03-01Z' + g * interval '1 min' as at, (g %% 100 = 0)::integer as again) t"""
_TRIES = """
insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, error)
select a.id, 1, c.id, 'failed', a.first_leased_at, a.first_leased_at + interval '5 ms', 'HTTP 503 Service Unavailable'
  from menzil.archive a join menzil.channel c on c.name = a.channel where a.num_attempts > 1"""


@dataclass
class Shop:
    dsn: str
    lake: Path
    orders: DataFrame


@pytest.fixture(scope="module")
def shop(
    server: Embedded, _installed: str, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    """A database with a day of history, and the lake that has it. Its month has left the database."""
    from menzil.spark.jobs.export import export

    lake = tmp_path_factory.mktemp("pages") / "lake"
    with database(server, "spark_pages", _installed) as dsn:
        with menzil.Menzil(dsn) as mq, psycopg.connect(dsn) as conn:
            for name in ("billing", "partner"):
                mq.create_endpoint(name, "http", {"url": f"https://{name}.example/hooks"})
            mq.channel_set("failures")
            conn.execute("select menzil._make_archive_month('2026-03-01Z')")
            archiving.archive(conn, _COLUMNS, _ROWS, {})
            conn.execute(_TRIES)
        export(spark, dsn, lake, drop=True)
        orders = spark.createDataFrame([("7", 9.5, "ada")], "order_id string, amount double, customer string")
        orders.write.parquet(str(lake.parent / "orders"))
        yield Shop(dsn, lake, orders)


class Reader(Run):
    """Also types conditions of a replay, and asks DuckDB."""

    shop: Shop
    page: Path

    def _shell(self, block: Block) -> str:
        lines = shell_lines(block.text)
        if not lines[0].startswith("--where"):
            return super()._shell(block)
        command = f"menzil pipeline replay --lake {self.shop.lake} --all --run-id conditions"
        # A plan that is only shown ends with 1 where there is no terminal.
        return "".join(self._command(f"{command} {line}", replace(block, mark="ends with 1"), True) for line in lines)

    def _line(self, line: str, block: Block, last: bool) -> str:
        # An audit takes twenty seconds; tests/spark/test_audit_lake.py runs this command.
        return "" if line.startswith("menzil pipeline audit") else super()._line(line, block, last)

    def _sql(self, block: Block) -> str:
        attach = re.search(r"`(attach 'lake'[^`]*)8643(', authorization_type 'none'\);)`", self.page.read_text())
        assert attach is not None
        with served(CatalogApp(self.shop.dsn, local=Access.viewer("ada"))) as seat, duck() as conn:
            conn.execute(f"{attach[1]}{seat.port}{attach[2]}")
            assert dict(conn.execute(block.text).fetchall()) == {"billing": 1_200, "partner": 100}
        return ""


@contextmanager
def streams_that_end(spark: SparkSession) -> Iterator[None]:
    """Queries that a block starts have a batch each, and stop."""
    try:
        yield
        for query in spark.streams.active:
            until(lambda query=query: query.lastProgress or query.exception())
            assert query.exception() is None
    finally:
        for query in spark.streams.active:
            query.stop()


def dead_letter(dsn: str) -> int:
    """A message that failed for good: without one, a stream has nothing to say for ten seconds."""
    with menzil.Menzil(dsn) as mq:
        mq.send("partner", {"order": 1})
        (message,) = mq.dequeue(1, channels="partner")
        mq.fail(message, "no such order", permanent=True)
        return message.id


@pytest.mark.parametrize("name", RUN)
def test_blocks_of_a_page_that_need_spark_do_what_they_say(
    name: str, shop: Shop, db: str, spark: SparkSession, tmp_path: Path
) -> None:
    # A lake is registered in a database that does not know it.
    run = Reader(db if "other-engines" in name else shop.dsn, tmp_path)
    run.shop, run.page = shop, RUN[name]
    stored, payload = str(shop.lake.parent / "orders"), "struct(*) as payload"
    run.names |= {
        "spark": spark,
        "place": str(tmp_path / "place"),
        "orders": shop.orders.selectExpr(payload),
        "events": spark.readStream.schema(shop.orders.schema).parquet(stored).selectExpr(payload),
    }
    run.stand_ins |= {
        "/data/lake": str(shop.lake),
        '"postgresql://localhost/shop"': repr(shop.dsn),
        '"$MENZIL_DSN"': shlex.quote(shop.dsn),
        "hdfs:///checkpoints": str(tmp_path / "checkpoints"),
        '"checkpoints/': f'"{tmp_path}/checkpoints/',
        '"ended"': f'"{tmp_path}/ended"',
        '"orders")': f'"{stored}")',
        "2026-11-0": "2026-03-0",
    }
    run.parts = {"spark": lambda _: streams_that_end(spark)}
    failed = dead_letter(shop.dsn) if "cluster" in name else None
    for block in with_spark(RUN[name]):
        run.block(block)
    if failed is not None:
        with menzil.Menzil(shop.dsn) as mq:
            assert [message.payload["id"] for message in mq.dequeue(2, channels="failures")] == [failed]
