"""Searches read as many pages in a deep queue as in a shallow one: they have an index, or a window."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from bench import fill
from menzil.ops import looking_messages, searching
from menzil.ops.op import Op
from menzil.ops.searching import Wanted

SHALLOW, DEEP = 5_000, 50_000
WINDOW = 1_000
CORR = UUID("6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11")
PAST = datetime.now(UTC) - timedelta(days=1)

pytestmark = pytest.mark.slow

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


def pages(conn: psycopg.Connection[Any], op: Op[Any]) -> int:
    """Pages that the statement touches, the second time it runs."""
    for _ in range(2):
        row = conn.execute(f"explain (analyze, buffers, format json) {op.text}", op.params).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.mark.parametrize("known", [False, True], ids=["never analyzed", "analyzed"])
def test_searches_read_no_more_in_a_deep_queue(new_db: Callable[[], str], known: bool) -> None:
    with psycopg.connect(new_db(), autocommit=True) as conn:
        fill.channels(conn, 20)
        conn.execute("select menzil.channel_set('rare')")
        conn.execute(
            "select menzil.send_with_options('rare', '{}', p_ordering_key => 'one', p_idempotency_key => 'one',"
            f" p_correlation_id => '{CORR}')"
        )
        found, filled = [], 0
        for depth in (SHALLOW, DEEP):
            fill.spread(conn, filled, depth - filled, 20)
            filled = depth
            if known:
                conn.execute("analyze")
            found.append({name: pages(conn, op) for name, op in SEARCHES.items()})
    shallow, deep = found
    assert {name: (shallow[name], deep[name]) for name in SEARCHES if deep[name] > 1.5 * shallow[name] + 200} == {}
