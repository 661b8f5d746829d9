"""Arrays mean the same whatever number their first element has: PostgreSQL lets them start anywhere."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.pace import examples
from tests.sql.emptying import empty

NAMES = ["work", "narrow"]
lows = st.integers(-3, 3)
messages = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(0, 9),
        st.integers(0, 10),
        st.none() | st.sampled_from(["k", "l"]),
        st.none() | st.integers(0, 3),
    ),
    min_size=1,
    max_size=4,
)


def shifted(values: list[Any], low: int, kind: str) -> str:
    """Return the array as a literal whose first element has the number `low`."""
    body = ",".join("NULL" if value is None else str(value) for value in values)
    return f"'[{low}:{low + len(values) - 1}]={{{body}}}'::{kind}[]"


@pytest.fixture
def queue(conn: psycopg.Connection) -> psycopg.Connection:
    empty(conn)
    conn.execute("select menzil.channel_set(n) from unnest(%s::text[]) n", [NAMES])
    return conn


def send(conn: psycopg.Connection, given_: list[tuple[Any, ...]], low: int) -> list[tuple[Any, ...]]:
    names, payloads, priorities, keys, once = zip(*given_, strict=True)
    # A key belongs to one payload and one place of this test.
    used = [None if word is None else f"{word}-{payload}" for word, payload in zip(once, payloads, strict=True)]
    text = ", ".join(
        shifted(list(values), low + shift, kind)
        for shift, (values, kind) in enumerate([(names, "text"), (payloads, "jsonb"), (priorities, "integer")])
    )
    text += f", p_idempotency_keys => {shifted(used, low - 1, 'text')}"
    text += f", p_ordering_keys => {shifted(list(keys), low + 4, 'text')}"
    conn.execute(f"select menzil.send_many({text})")
    return conn.execute(
        "select channel, payload, priority, ordering_key, idempotency_key from menzil.queue order by id"
    ).fetchall()


@examples(40)
@given(some=messages, low=lows)
def test_a_batch_is_the_same_wherever_its_arrays_start(
    queue: psycopg.Connection, some: list[tuple[Any, ...]], low: int
) -> None:
    with queue.transaction(force_rollback=True):
        plain = send(queue, some, 1)
    with queue.transaction(force_rollback=True):
        assert send(queue, some, low) == plain


@examples(25)
@given(low=lows, other=lows, count=st.integers(1, 4), pick=st.sampled_from(["complete", "defer", "heartbeat", "fail"]))
def test_leases_are_settled_wherever_the_arrays_start(
    queue: psycopg.Connection, low: int, other: int, count: int, pick: str
) -> None:
    with queue.transaction(force_rollback=True):
        queue.execute("select menzil.send_batch('work', array_fill('{}'::jsonb, array[%s]))", [count])
        leased = queue.execute(
            "select id, num_attempts from menzil.message_dequeue(60000, 10, '[0:0]={work}')"
        ).fetchall()
        assert len(leased) == count
        ids, attempts = shifted([i for i, _ in leased], low, "bigint"), shifted([a for _, a in leased], other, "bigint")
        more = {
            "complete": f", {shifted(['5'] * count, other, 'jsonb')}",
            "defer": f", {shifted(['2030-01-01'] * count, other, 'timestamptz')}",
            "heartbeat": ", 1000",
            "fail": f", {shifted(['no'] * count, other, 'text')}, {shifted(['1s'] * count, low, 'interval')}",
        }[pick]
        outcomes = queue.execute(f"select id, outcome from menzil.message_{pick}({ids}, {attempts}{more})").fetchall()
        assert outcomes == [(number, "retry" if pick == "fail" else "settled") for number, _ in leased]
