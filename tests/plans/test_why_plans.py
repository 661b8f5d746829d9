"""Looking at one message, one channel or the next turns reads a bounded part of the queue, at any depth and width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest

from bench import fill
from tests.plans import rules
from tests.plans.capture import Capture, Plan
from tests.plans.test_plans import analyze, grow

SHALLOW, DEEP = 10_000, 200_000
WIDTHS = {"3 channels": 3, "5,000 channels": 5_000}
STAGES = ("analyzed empty", "analyzed shallow", "grown since", "analyzed deep")
ROUNDS = 7  # the plan cache makes five custom plans before it considers a generic one
# Read whole on purpose: the registry has a row per worker.
SMALL = frozenset({"worker"})

pytestmark = pytest.mark.slow

PLACES = {
    "the first": "select menzil._lane_next(l.channel_id, l.rank, null, 1) from menzil.lane l "
    "where l.tail_due is not null",
    "the last": "select last_id from menzil.run order by due_at desc, first_id desc",
    "in flight": "select lo_id from menzil.lease",
    "scheduled": "select id from menzil.scheduled",
    "behind its key": "select id from menzil.key_queue where waits = 1",
    "in the log": "select first_id from menzil.line where rank is not null",
    "dead": "select original_message_id from menzil.dead_letter",
    "completed": "select lo_id from menzil.done where status = 'completed'",
    "a child": "select id from menzil.message where redrive_of is not null",
}


@dataclass
class Story:
    """One database filled step by step, and what looking at it did."""

    plans: dict[str, list[Plan]] = field(default_factory=dict)
    pages: dict[int, dict[str, int]] = field(default_factory=dict)
    registers: frozenset[str] = frozenset()


@pytest.fixture(scope="module", params=WIDTHS)
def story(request: pytest.FixtureRequest, new_db: Callable[[], str]) -> Story:
    dsn, channels = new_db(), WIDTHS[request.param]
    story = Story()
    with psycopg.connect(dsn, autocommit=True) as conn:
        found = conn.execute("select sequencename from pg_sequences where schemaname = 'menzil'").fetchall()
        story.registers = frozenset(name for (name,) in found) | SMALL
        fill.channels(conn, channels)
        analyze(conn)
        grow(conn, 0, SHALLOW, channels)
        put_everywhere(conn)
        story.plans["analyzed empty"] = look(dsn, story.pages.setdefault(SHALLOW, {}))
        analyze(conn)
        story.plans["analyzed shallow"] = look(dsn)
        grow(conn, SHALLOW, DEEP, channels)
        put_everywhere(conn)
        story.plans["grown since"] = look(dsn)
        analyze(conn)
        story.plans["analyzed deep"] = look(dsn, story.pages.setdefault(DEEP, {}))
    return story


def put_everywhere(conn: psycopg.Connection[Any]) -> None:
    """Messages in every place that there is."""
    conn.execute("select menzil.channel_set('c0', 500)")
    conn.execute("select count(*) from menzil.message_dequeue(3600000, 50)")
    for act in ("message_complete(id, num_attempts)", "message_fail(id, num_attempts, '[PERMANENT] no')"):
        conn.execute(f"select menzil.{act} from menzil.message_dequeue(3600000, 50)")
    conn.execute("select menzil.redrive_message(id) from (select id from menzil.dlq where status = 'failed' limit 5) d")
    conn.execute("select menzil.maintain()")
    for _ in range(20):
        conn.execute("select menzil.send_with_options('c1', '1', p_ordering_key => 'k', p_priority => 2)")
        conn.execute("select menzil.send_with_options('c1', '1', p_scheduled_at => now() + interval '1 hour')")
        conn.execute("select menzil.send('c2', '1')")


def look(dsn: str, pages: dict[str, int] | None = None) -> list[Plan]:
    capture = Capture(dsn)
    found = {place: capture.conn.execute(f"{query} limit 1").fetchone() for place, query in PLACES.items()}
    messages = {place: str(row[0]).strip("(").split(",")[0] for place, row in found.items() if row}
    assert len(messages) == len(PLACES), messages.keys()
    calls = {
        **{f"why {place}": f"message_why({message})" for place, message in messages.items()},
        **{f"life {place}": f"message_life({message})" for place, message in messages.items()},
        **{f"family {place}": f"message_family({message})" for place, message in messages.items()},
        "turns": "turns(50)",
        "one turn": "turns(1)",
    }
    capture.plans.clear()
    for _ in range(ROUNDS):
        for call in calls.values():
            capture.run(f"select * from menzil.{call}")
    plans = list(capture.plans)
    for name, call in {**calls, "state": "channel_state('c1')"}.items() if pages is not None else ():
        ((plan,),) = capture.run(f"explain (analyze, buffers, timing off, format json) select * from menzil.{call}")
        pages[name] = plan[0]["Plan"]["Shared Hit Blocks"] + plan[0]["Plan"]["Shared Read Blocks"]
    capture.close()
    return plans


@pytest.mark.parametrize("stage", STAGES)
def test_no_look_reads_a_whole_table(story: Story, stage: str) -> None:
    assert rules.whole_tables(story.plans[stage], story.registers) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_look_walks_through_a_whole_index(story: Story, stage: str) -> None:
    assert rules.whole_indexes(story.plans[stage]) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_look_sorts_rows_of_a_changing_table(story: Story, stage: str) -> None:
    assert rules.sorts(story.plans[stage]) == set()


@pytest.mark.parametrize("stage", STAGES)
def test_no_look_is_compiled(story: Story, stage: str) -> None:
    assert rules.compiled(story.plans[stage]) == set()


def test_pages_that_a_look_reads_do_not_grow_with_the_queue(story: Story) -> None:
    grown = {
        name: (pages, story.pages[DEEP][name])
        for name, pages in story.pages[SHALLOW].items()
        if story.pages[DEEP][name] > 2 * pages + 200
    }
    assert grown == {}
