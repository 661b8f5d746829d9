"""Searches read as many pages in a deep queue as in a shallow one: they have an index, or a window."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from bench import fill
from menzil.ops import looking_messages, searching
from menzil.ops.op import Op
from menzil.ops.searching import Wanted
from tests.plans.conftest import NewDb

SHALLOW, DEEP = 5_000, 50_000
WINDOW = 1_000
CORR = UUID("6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11")
PAST = datetime.now(UTC) - timedelta(days=1)

pytestmark = pytest.mark.slow

_CORRELATED = """
select menzil.send_many(array_agg('rare'::text), array_agg('{}'::jsonb),
  p_correlation_ids => array_agg(gen_random_uuid()))
  from generate_series(1, %s::integer)"""

SEARCHES: dict[str, Op[Any]] = {
    "newest": searching.in_window(Wanted(), 50, window=WINDOW),
    "channel": searching.in_window(Wanted(channel="rare"), 50, window=WINDOW),
    "status": searching.in_window(Wanted(status=["failed"]), 50, window=WINDOW),
    "error": searching.in_window(Wanted(error="timed out"), 50, window=WINDOW),
    "one": looking_messages.message(1),
    "ids": searching.of_ids(Wanted(), [1, 2, 3], 50),
    "correlation": searching.of_correlation(Wanted(), CORR, 50),
    "time": searching.message_id_at(PAST),
    "key": searching.messages_with_key("one", None),
    "idempotency": searching.messages_with_key(None, "one"),
}


def look_up(conn: psycopg.Connection[Any]) -> None:
    """The job lookups, as a worker does it: until a round finds nothing more."""
    while (row := conn.execute("select menzil.job_run('lookups')").fetchone()) and row[0] >= 1000:
        pass


def test_messages_that_the_job_lookups_has_not_seen_are_read_once_each(new_db: NewDb) -> None:
    """Without jobs a search by correlation id reads what was sent since the last one, and no older message."""
    with psycopg.connect(new_db(), autocommit=True) as conn:
        fill.channels(conn, 20)
        fill.spread(conn, 0, SHALLOW, 20)
        look_up(conn)
        fill.spread(conn, SHALLOW, 1_000, 20)
        found = [pages(conn, SEARCHES["correlation"])]
        fill.spread(conn, SHALLOW + 1_000, 1_000, 20)
        found.append(pages(conn, SEARCHES["correlation"]))
        (size,) = conn.execute("select pg_relation_size(tableoid) / 8192 from menzil.message limit 1").fetchone() or (
            0,
        )
    assert found[0] < found[1] < size / 2


def pages(conn: psycopg.Connection[Any], op: Op[Any]) -> int:
    """Pages that the statement touches, the second time it runs."""
    for _ in range(2):
        row = conn.execute(f"explain (analyze, buffers, format json) {op.text}", op.params).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


Pages = dict[str, int]


@pytest.fixture(scope="module")
def found(new_db: NewDb) -> dict[bool, list[Pages]]:
    """The pages of every search in a shallow queue and then in a deep one: never analyzed, and analyzed each time."""
    dsn, filled = new_db(), 0
    found: dict[bool, list[Pages]] = {False: [], True: []}
    with psycopg.connect(dsn, autocommit=True) as conn:
        fill.channels(conn, 20)
        conn.execute("select menzil.channel_set('rare')")
        conn.execute(
            "select menzil.send_with_options('rare', '{}', p_ordering_key => 'one', p_idempotency_key => 'one',"
            f" p_correlation_id => '{CORR}')"
        )
    for depth in (SHALLOW, DEEP):
        with psycopg.connect(dsn, autocommit=True) as conn:
            fill.spread(conn, filled, depth - filled, 20)
            conn.execute(_CORRELATED, (depth - filled,))
            filled = depth
            look_up(conn)
        with psycopg.connect(new_db(dsn), autocommit=True) as conn:
            conn.execute("analyze")
            found[True].append({name: pages(conn, op) for name, op in SEARCHES.items()})
        with psycopg.connect(dsn, autocommit=True) as conn:
            found[False].append({name: pages(conn, op) for name, op in SEARCHES.items()})
    return found


@pytest.mark.parametrize("known", [False, True], ids=["never analyzed", "analyzed"])
def test_searches_read_no_more_in_a_deep_queue(found: dict[bool, list[Pages]], known: bool) -> None:
    shallow, deep = found[known]
    assert {name: (shallow[name], deep[name]) for name in SEARCHES if deep[name] > 1.5 * shallow[name] + 200} == {}
