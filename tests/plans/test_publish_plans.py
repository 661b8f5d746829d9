"""A publish meets the subscriptions of its own event type, however many others there are."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from tests.plans import rules
from tests.plans.calls import ROUNDS
from tests.plans.capture import Capture, Plan

TYPES = 3_000


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
def plans(request: pytest.FixtureRequest, new_db: Callable[[], str]) -> list[Plan]:
    """Plans of publishes where three channels listen to one type and one of them to thousands of others."""
    dsn = new_db()
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('c' || n) from generate_series(0, 2) n")
        conn.execute("select menzil.create_event_type('e' || n) from generate_series(1, %s) n", [TYPES])
        conn.execute("select menzil.subscribe('e' || n, 'c0') from generate_series(1, %s) n", [TYPES])
        conn.execute("""select menzil.subscribe('e1', 'c' || n, '{"a": 1}') from generate_series(1, 2) n""")
        if request.param == "analyzed":
            conn.execute("analyze")
    capture = Capture(dsn)
    for round_ in range(ROUNDS):
        assert capture.run("""select menzil.publish('e1', '{"a": 1}')""") == [(3,)]
        assert capture.run("select menzil.publish('e1', '{}', p_idempotency_key => %s)", (str(round_),)) == [(1,)]
        batch = """array['{"event_type": "e1", "payload": {"a": 1}}', '{"event_type": "e2", "payload": 1}']::jsonb[]"""
        assert capture.run(f"select menzil.publish_batch({batch})") == [(4,)]
    capture.close()
    return capture.plans


@pytest.mark.slow
def test_no_publish_reads_a_whole_table_or_index(plans: list[Plan]) -> None:
    registers = frozenset(
        node["Relation Name"]
        for plan in plans
        for node in plan.nodes()
        if node.get("Relation Name", "") in ("message_id", "ended_count", "wanted")
    )
    assert rules.whole_tables(plans, registers) == set()
    assert rules.whole_indexes(plans) == set()
    assert rules.joins(plans) == set()
    assert rules.compiled(plans) == set()


@pytest.mark.slow
def test_a_publish_meets_no_subscription_of_other_types(plans: list[Plan]) -> None:
    met = [
        node["Actual Loops"] * (node["Actual Rows"] + node.get("Rows Removed by Filter", 0))
        for plan in plans
        for node in plan.nodes()
        if node.get("Relation Name") == "subscription"
    ]
    assert met
    assert max(met) <= 4
