"""Whatever is wrong with a call: its documented SQLSTATE, one sentence, one hint, and nothing written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.sql.bad_calls import CALLS
from tests.sql.emptying import empty
from tests.sql.queue import Queue

COUNTS = """
select string_agg(format('select %L, count(*) from menzil.%I', relname, relname), ' union all ' order by relname)
  from pg_class where relnamespace = 'menzil'::regnamespace and relkind in ('r', 'p') and not relispartition
"""


@pytest.fixture(scope="module")
def furnished(layer_db: str) -> Iterator[Queue]:
    """A queue with something of everything, which no refused call may change."""
    with psycopg.connect(layer_db, autocommit=True) as conn:
        empty(conn)
        queue = Queue(conn)
        for name in ("work", "closed", "tight"):
            queue.call("channel_set", name)
        queue.call("channel_set", "tight", p_max_size=1)
        queue.call("create_endpoint", "off", "http", {"url": "https://example.com/"})
        queue.call("disable_endpoint", "off")
        assert [queue.send("closed"), queue.send("tight"), queue.send(idempotency_key="used")] == [1, 2, 3]
        queue.call("channel_release", "closed")
        leased = [queue.lease(["work"]), queue.send(), queue.lease(["work"])]
        assert (leased[0].id, leased[1], leased[2].id) == (3, 4, 4)
        queue.defer(leased[2])
        assert queue.lease(["work"]).num_attempts == 2
        ended = queue.send()
        queue.complete(queue.lease(["work"]))
        assert ended == 5
        queue.conn.execute("select menzil.set_setting('max_payload_size', '2048')")
        yield queue


def counts(queue: Queue) -> list[tuple[str, int]]:
    return queue.all(queue.one(COUNTS))


@pytest.mark.parametrize(("state", "call"), CALLS)
def test_a_bad_call_is_refused_in_one_sentence_and_writes_nothing(furnished: Queue, state: str, call: str) -> None:
    before = counts(furnished)
    with pytest.raises(psycopg.Error) as refused:
        furnished.all(f"select * from menzil.{call}")
    said = refused.value.diag
    assert (said.sqlstate, said.message_primary) == (state, said.message_primary)
    assert "\n" not in said.message_primary
    assert len(said.message_primary) < 400
    assert said.message_primary[0].isupper() or said.message_primary[0] == "'"
    # The one sentence whose words were given from outside has no full stop.
    assert said.message_primary.endswith(".") or said.sqlstate == "23505"
    assert said.message_hint
    assert counts(furnished) == before


def test_every_documented_code_has_a_bad_call() -> None:
    documented = {"42704", "55000", "22004", "22023", "54000", "23505", "53400", "MZ001", "MZ002"}
    assert {state for state, _ in CALLS} == documented


NUL = "a\x00b"


@pytest.mark.parametrize(
    "send",
    [
        lambda queue: queue.call("send", NUL, {}),
        lambda queue: queue.call("send", "work", {"text": NUL}),
        lambda queue: queue.send(ordering_key=NUL),
        lambda queue: queue.send(idempotency_key=NUL),
        lambda queue: queue.send(headers={"X-A": NUL}),
        lambda queue: queue.call("channel_set", NUL),
        lambda queue: queue.dequeue(worker=NUL),
    ],
)
def test_a_nul_in_text_is_refused_by_the_driver_or_the_server(furnished: Queue, send: Callable[[Queue], None]) -> None:
    before = counts(furnished)
    with pytest.raises(psycopg.Error) as refused:
        send(furnished)
    assert refused.value.sqlstate in (None, "22P05", "22021")
    assert counts(furnished) == before


@pytest.mark.parametrize("call", ["send('work', '{')", "send('work', 'NaN')", "send_with_options('work', '{}', 1.5)"])
def test_what_postgresql_cannot_read_never_reaches_the_queue(furnished: Queue, call: str) -> None:
    before = counts(furnished)
    with pytest.raises(psycopg.Error):
        furnished.one(f"select menzil.{call}")
    assert counts(furnished) == before


def test_a_refused_call_leaves_the_transaction_to_its_caller(furnished: Queue) -> None:
    before = counts(furnished)
    with furnished.conn.transaction(force_rollback=True):
        with pytest.raises(psycopg.errors.UndefinedObject), furnished.conn.transaction():
            furnished.call("send", "nobody", {})
        assert furnished.send()
    assert counts(furnished) == before
