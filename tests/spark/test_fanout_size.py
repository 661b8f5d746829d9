"""A normal size of a fan-out: 1.7 million events, 5,000 subscriptions. Left out of `make test`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import psycopg
import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = int(os.environ.get("MENZIL_FANOUT_EVENTS", "1700000"))
SUBSCRIPTIONS = 5_000
ENDPOINTS = 50


@pytest.mark.torture
@pytest.mark.timeout(7200)
@pytest.mark.usefixtures("compiled")
def test_every_event_of_a_large_table_finds_its_one_subscription_among_thousands(spark: SparkSession, db: str) -> None:
    from menzil.spark.jobs.fanout import fanout, plan_fanout

    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.set_setting('max_queue_size', '0')")
        conn.execute("select menzil.create_event_type('order')")
        conn.execute("select menzil.channel_set('e' || g) from generate_series(0, %s - 1) g", (ENDPOINTS,))
        # Two members each: one that a hundred others have too, one that is rare.
        conn.execute(
            """select menzil.subscribe('order', 'e' || g %% %s,
                        jsonb_build_object('customer', g, 'country', 'c' || g %% 50))
                 from generate_series(0, %s - 1) g""",
            (ENDPOINTS, SUBSCRIPTIONS),
        )
        events = spark.range(0, EVENTS, 1, 8).selectExpr(
            f"id % {SUBSCRIPTIONS} as customer", f"concat('c', id % {SUBSCRIPTIONS} % 50) as country", "id as number",
            "cast(id / 4 as decimal(12,2)) as amount", "array('a', 'b') as tags",
        )  # fmt: skip
        started = time.monotonic()
        plan = plan_fanout(spark, events, db, send_id="large", event_type="order")
        planned = time.monotonic()
        assert (plan.events, plan.messages, plan.unwanted, plan.refused) == (EVENTS, EVENTS, 0, 0)
        assert sum(plan.endpoints.values()) == EVENTS
        assert len(plan.endpoints) == ENDPOINTS
        report = fanout(spark, events, db, send_id="large", event_type="order", plan=plan)
        print(f"\n{EVENTS:,} events: plan {planned - started:.1f} s, send {report.seconds:.1f} s")
        assert conn.execute("select count(*), count(distinct payload ->> 'number') from menzil.queue").fetchone() == (
            EVENTS, EVENTS,
        )  # fmt: skip
