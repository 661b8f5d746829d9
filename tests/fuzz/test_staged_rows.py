"""Rows of a bulk send, staged by strangers: the commit sends them all or refuses them as documented."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from tests.fuzz.pace import examples
from tests.fuzz.play import complaints
from tests.sql.emptying import empty

plain = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.text(plain, max_size=12)
json_texts = st.one_of(
    st.sampled_from(["{}", '{"a": 1}', "[]", "1", "null", '"x"', '{"X-A": "1"}']),
    st.sampled_from(
        ["", "{", "nul", "NaN", "1e400", '"\\u0000"', '"\\ud800"', '{"a": 1, "a": 2}', "01", "[1,]", " 1 ", "\ufeff{}"]
    ),
    st.sampled_from(
        [
            '{"X-A": "a\\r\\nb"}',
            '{"X A": "1"}',
            '{"X-A": 1}',
            "[" * 5000 + "]" * 5000,
            "[" * 30000 + "]" * 30000,
            "9" * 200_000,
        ]
    ),
    texts,
)
times = st.sampled_from(
    [
        None,
        None,
        "infinity",
        "-infinity",
        "4714-11-24 BC",
        "0001-01-01",
        "2030-01-01",
        "9999-12-31 23:59",
        "294276-01-01",
    ]
)
rarely_null = st.integers(0, 15)
staged = st.fixed_dictionaries(
    {
        "endpoint": st.sampled_from(["work", "work", "work", "narrow", "nobody", "closed", "", None]) | texts,
        "payload": st.just("{}") | json_texts | st.none(),
    },
    optional={
        "content": st.none() | st.binary(max_size=5),
        "priority": st.sampled_from([0, 10, 11, -1, 2147483647, -2147483648]),
        "ordering_key": texts | st.sampled_from(["k", "x" * 1024, "ü" * 600]),
        "idempotency_key": texts | st.sampled_from(["i", "j", "x" * 1025]),
        "correlation_id": texts
        | st.sampled_from(["00000000-0000-0000-0000-000000000001", "{00000000000000000000000000000001}", "x"]),
        "scheduled_at": times,
        "expires_at": times,
        "headers": json_texts,
        "metadata": json_texts,
        "replay_of": st.sampled_from([None, 0, -1, 2**63 - 1]),
    },
)
good = st.fixed_dictionaries(
    {"endpoint": st.sampled_from(["work", "narrow"]), "payload": st.sampled_from(["{}", '{"a": 1}'])}
)
counts = st.sampled_from([None, None, None, None, 0, -1, 2, 2**63 - 1, -(2**63)])


@pytest.fixture(scope="module")
def queue(conn: psycopg.Connection) -> psycopg.Connection:
    empty(conn)
    conn.execute("select menzil.channel_set(n) from unnest(array['work', 'narrow', 'closed']) n")
    conn.execute("select menzil.send('closed', '{}')")
    conn.execute("select menzil.channel_release('closed')")
    return conn


def stage(conn: psycopg.Connection, table: str, token: str, rows: list[dict[str, Any]]) -> None:
    for n, row in enumerate(rows):
        row = {"token": token, "n": n, **row}
        text = sql.SQL("insert into menzil.{} ({}) values ({})").format(
            sql.Identifier(table),
            sql.SQL(", ").join(map(sql.Identifier, row)),
            sql.SQL(", ").join([sql.Placeholder()] * len(row)),
        )
        conn.execute(text, list(row.values()))


@examples(80)
@given(rows=st.lists(good | staged, max_size=4), more=st.lists(good | staged, max_size=2), told=counts)
def test_staged_rows_are_all_sent_or_refused_as_documented(
    queue: psycopg.Connection, rows: list[dict[str, Any]], more: list[dict[str, Any]], told: int | None
) -> None:
    before = waiting(queue)
    (table,) = queue.execute("select staging from menzil.bulk_open('fuzz')").fetchone() or ()
    stage(queue, table, "a", rows)
    stage(queue, table, "b", more)
    reported = [len(rows) if told is None else told, len(more)]
    try:
        sent = queue.execute("select * from menzil.bulk_commit('fuzz', array['a', 'b'], %s)", [reported]).fetchone()
    except psycopg.Error as error:
        said = list(complaints(error, longest=2000))
        assert not said, said
        assert waiting(queue) == before
        queue.execute("select menzil.bulk_abort('fuzz')")
        return
    assert sent is not None
    assert sent[0] == len(rows) + len(more)
    assert waiting(queue) == before + sent[1]
    queue.execute("delete from menzil.bulk_send")
    queue.execute("select * from menzil.queue").fetchall()
    queue.execute("select menzil.channel_purge(n) from unnest(array['work', 'narrow']) n")


def waiting(conn: psycopg.Connection) -> int:
    (count,) = conn.execute("select count(*) from menzil.queue").fetchone() or ()
    return count
