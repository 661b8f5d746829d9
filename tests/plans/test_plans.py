"""No plan reads a whole table, at any depth, with few channels or many, whatever the statistics say."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg
import pytest

from bench import fill
from bench.buffers import Cost, cost
from tests.plans import rules
from tests.plans.calls import everything
from tests.plans.capture import Capture, Plan
from tests.plans.conftest import NewDb

SHALLOW, DEEP = 10_000, 200_000
WIDTHS = {"one channel": 1, "5,000 channels": 5_000}
STAGES = ("never analyzed", "analyzed empty", "analyzed shallow", "grown since", "analyzed deep")

pytestmark = pytest.mark.slow


@dataclass
class Story:
    """One database filled step by step, and what was seen on the way."""

    plans: dict[str, list[Plan]] = field(default_factory=dict)
    costs: dict[int, Cost] = field(default_factory=dict)
    registers: frozenset[str] = frozenset()


@pytest.fixture(scope="module")
def at_once(new_db: NewDb) -> list[Plan]:
    """What is seen in a new database, which has ten channels in either story."""
    return look_at_once(new_db())


@pytest.fixture(scope="module", params=WIDTHS)
def story(request: pytest.FixtureRequest, new_db: NewDb, at_once: list[Plan]) -> Story:
    dsn, channels = new_db(), WIDTHS[request.param]
    story = Story(plans={"never analyzed": at_once})
    with psycopg.connect(dsn, autocommit=True) as conn:
        found = conn.execute("select sequencename from pg_sequences where schemaname = 'menzil'").fetchall()
        story.registers = frozenset(name for (name,) in found)
        fill.channels(conn, channels)
        analyze(conn)
        grow(conn, 0, SHALLOW, channels)
        put_out_of_step(conn, channels)
        story.plans["analyzed empty"] = look(dsn)
        story.costs[SHALLOW] = cost(conn)
        analyze(conn)
        story.plans["analyzed shallow"] = look(dsn)
        grow(conn, SHALLOW, DEEP, channels)
        story.plans["grown since"] = look(dsn)
        story.costs[DEEP] = cost(conn)
        analyze(conn)
        story.plans["analyzed deep"] = look(dsn)
    return story


def grow(conn: psycopg.Connection, first: int, last: int, channels: int) -> None:
    fill.spread(conn, first, last - first, channels)
    fill.settle(conn)


def put_out_of_step(conn: psycopg.Connection, channels: int) -> None:
    """Every third of many channels is one message ahead, so the messages that are leased together have gaps."""
    names = [f"c{number}" for number in range(0, channels, 3)]
    if channels > 1:
        conn.execute(
            "select menzil.message_complete(array_agg(id), array_agg(num_attempts))"
            " from menzil.message_dequeue(30000, %s, %s::text[])",
            (len(names), names),
        )


def analyze(conn: psycopg.Connection) -> None:
    tables = (
        "select oid::regclass::text from pg_class where relnamespace = 'menzil'::regnamespace and relkind in ('r', 'p')"
    )
    for (table,) in conn.execute(tables).fetchall():
        conn.execute(f"analyze {table}")


def look_at_once(dsn: str) -> list[Plan]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        fill.channels(conn, 10)
    return look(dsn)


def look(dsn: str) -> list[Plan]:
    capture = Capture(dsn)
    everything(capture)
    capture.close()
    return capture.plans


@pytest.mark.parametrize("stage", STAGES)
def test_no_statement_reads_a_whole_table(story: Story, stage: str) -> None:
    assert rules.whole_tables(story.plans[stage], story.registers) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_statement_walks_through_a_whole_index(story: Story, stage: str) -> None:
    assert rules.whole_indexes(story.plans[stage]) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_statement_joins_tables_by_hash_or_merge(story: Story, stage: str) -> None:
    assert rules.joins(story.plans[stage]) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_statement_sorts_rows_of_a_changing_table(story: Story, stage: str) -> None:
    assert rules.sorts(story.plans[stage]) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_statement_is_compiled(story: Story, stage: str) -> None:
    assert rules.compiled(story.plans[stage]) == set()


def test_pages_per_message_stay_the_same_as_the_queue_grows(story: Story) -> None:
    assert story.costs[DEEP].total <= 1.2 * story.costs[SHALLOW].total
    assert story.costs[DEEP].send <= 1.2 * story.costs[SHALLOW].send
