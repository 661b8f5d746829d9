"""A call for a few messages reads as many pages in a long history as in a short one, also where statistics mislead.

A month that begins has no statistics, and autovacuum may come at a bad moment. Then a scan that reads a month for each
message looks as cheap as a probe by its id.
"""

from __future__ import annotations

from statistics import median

import psycopg
import pytest

from bench.buffers import shared
from tests.plans.conftest import NewDb
from tests.plans.misled import BELIEFS, World, furnish, grow, leave_alone, mislead
from tests.plans.misled_looks import CALLS

SHORT, LONG = 1_200, 6_000  # the short one is longer than the 1,000 rows that some looks are bounded by
CUSTOM, GENERIC = 5, 3  # rounds: the plan cache makes five custom plans before it considers a generic one
MORE = 200  # pages: a month has more than a thousand at least
#: Letters of a channel have no index of this order and are sorted: a page for each at most, and none of their messages.
SORTED = ("redrive a few of many", "redrive a few of a cause")

pytestmark = pytest.mark.slow

Pages = dict[str, float]


def measure(dsn: str, views: bool) -> Pages:
    """Pages of every call, with custom plans or with generic ones: those that are more."""
    found: Pages = {}
    with psycopg.connect(dsn, autocommit=True) as maker, psycopg.connect(dsn, autocommit=True) as conn:
        world = World(maker)
        for name, make in CALLS.items():
            if views or not name.startswith("view "):
                world.clear()
                rounds = [shared(conn, *make(world)) for _ in range(CUSTOM + GENERIC)]
                found[name] = max(median(rounds[:CUSTOM]), median(rounds[CUSTOM:]))
    return found


@pytest.fixture(scope="module")
def lengths(new_db: NewDb) -> list[str]:
    """The same queue with a short history and with a long one, never analyzed."""
    first = new_db()
    with psycopg.connect(first, autocommit=True) as conn:
        leave_alone(conn)
        furnish(conn)
        grow(conn, "short", SHORT)
    second = new_db(first)
    with psycopg.connect(second, autocommit=True) as conn:
        grow(conn, "long", LONG - SHORT)
    return [first, second]


@pytest.mark.parametrize("belief", ["never analyzed", *BELIEFS])
def test_calls_for_a_few_messages_read_no_whole_month(new_db: NewDb, lengths: list[str], belief: str) -> None:
    found: list[Pages] = []
    for length in lengths:
        dsn = new_db(length)
        if belief in BELIEFS:
            with psycopg.connect(dsn, autocommit=True) as conn:
                mislead(conn, belief)
        found.append(measure(dsn, views=belief != "all alike"))
    short, long = found
    most = {name: 1.5 * pages + MORE + LONG * (name in SORTED) for name, pages in short.items()}
    assert {name: (short[name], long[name]) for name in short if long[name] > most[name]} == {}
