"""Whatever is wrong with a call: its documented SQLSTATE, one sentence, one hint, and nothing written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest

from tests.sql.bad_calls import CALLS
from tests.sql.emptying import empty
from tests.sql.queue import Queue
from tests.sql.refusing import counts, refused_cleanly


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


@pytest.mark.parametrize(("state", "call"), CALLS)
def test_a_bad_call_is_refused_in_one_sentence_and_writes_nothing(furnished: Queue, state: str, call: str) -> None:
    refused_cleanly(furnished, state, call)


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


@pytest.mark.parametrize(
    "call",
    [
        "message_complete(array[[3, 4]], array[[1, 2]])",
        "message_complete(array[3, 4], array[[1, 2]])",
        "message_defer(array[[3], [4]], array[1, 2])",
        "message_heartbeat(array[3, 4], array[[1], [2]], 1000)",
        "message_fail(array[3, 4], array[1, 2], array[['no', 'no']])",
        "message_dequeue(1000, 1, array[['work', 'tight']])",
        "delivery_configs(array[['off']])",
        "worker_suspects(array[[3]])",
        "bulk_commit('s', array[['a']], array[[1]])",
    ],
)
def test_an_array_of_two_dimensions_is_refused_and_no_error_of_postgresql(furnished: Queue, call: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="one dimension") as refused:
        furnished.all(f"select * from menzil.{call}")
    assert refused.value.diag.message_hint


@pytest.mark.parametrize(
    "call",
    [
        "send(%s, '{}')",
        "alter_endpoint(%s, '{}')",
        "disable_endpoint(%s)",
        "validate_endpoint_config(%s, '{}')",
        "register_protocol(%s, '[]')",
        "schedule_drop(%s)",
        "cron_next('* * * * *', %s, now())",
        "cron_parse('@' || %s)",
        "setting(%s)",
        "set_setting('notify', %s)",
        "validate_event(%s, '{}')",
        "feed_position(%s)",
    ],
)
def test_a_refusal_is_one_line_whatever_text_it_repeats(furnished: Queue, call: str) -> None:
    text = "two\nlines\u2028and\x85more\x7f" + "x" * 1000
    with pytest.raises(psycopg.Error) as refused:
        furnished.all(f"select * from menzil.{call}", text)
    said = refused.value.diag.message_primary
    assert refused.value.sqlstate in ("22023", "42704")
    assert len(said.splitlines()) == 1
    assert said.isprintable()
    assert len(said) < 400


@pytest.mark.parametrize(
    ("state", "call"),
    [
        ("42704", "job_run('sweep')"),
        ("42704", "job_run(null)"),
        ("22023", "reap_bulk_sends('2562047788 hours')"),
        ("22023", "delivery_configs(array['off'], array[now(), now()])"),
        ("22023", "feed_advance('lake', 'archive', 'abc', 1)"),
        ("22023", "feed_advance('lake', 'archive', '18446744073709551616', 1)"),
        ("22004", "feed_advance('lake', 'archive', null, 1)"),
        ("22004", "feed_advance('lake', 'archive', '7', null)"),
        ("22023", "feed_lost('archive', '-1', 1, 0)"),
        ("22004", "feed_lost('archive', '7', null, 0)"),
        ("22023", "archive_fingerprint(now(), 'abc')"),
        ("22023", "archive_fingerprint(now(), '1', '18446744073709551616')"),
        ("22023", "archive_fingerprint('4714-11-24 00:00+00 BC')"),
        ("22023", "archive_census(now(), 'abc')"),
        ("22023", "drop_exported_month('infinity', 0, 0, 0)"),
    ],
)
def test_what_a_type_allows_and_the_queue_cannot_use_is_refused_with_a_hint(
    furnished: Queue, state: str, call: str
) -> None:
    before = counts(furnished)
    with pytest.raises(psycopg.Error) as refused:
        furnished.all(f"select * from menzil.{call}")
    assert (refused.value.sqlstate, bool(refused.value.diag.message_hint)) == (state, True)
    assert counts(furnished) == before
