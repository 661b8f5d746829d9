"""What the benchmark says about workers is about deliveries that happened: all of them, each once."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

from bench import bouncer
from bench.receiver import Receiver
from bench.sections import deliver, memory, wake
from bench.server import CHANNEL

NewDb = Callable[[], str]


@pytest.fixture
def dsn(new_db: NewDb) -> str:
    dsn = new_db()
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set(%s)", (CHANNEL,))
        conn.execute("create table bare (id bigserial primary key, payload jsonb)")
    return dsn


def test_every_message_of_a_delivered_backlog_reaches_the_receiver_once(dsn: str) -> None:
    with Receiver() as receiver:
        deliver.prepare(dsn, receiver.url)
        found = deliver.deliver(dsn, receiver, 50, deliver.Way("two", processes=2))
        assert receiver.count == 50
        assert found.rate == 50 / receiver.seconds
        assert found.worker > 0
        deliver.deliver(dsn, receiver, 10, deliver.Way("again"))
        assert receiver.count == 10  # counted anew
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select count(*) from menzil.archive where status = 'completed'").fetchone() == (60,)


@pytest.mark.parametrize("way", list(wake.OPTIONS))
def test_an_idle_worker_gets_what_is_sent_to_it(dsn: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == wake.POOLED and bouncer.PATH is None:
        pytest.skip("pgbouncer is not installed")
    monkeypatch.setattr(wake, "PAUSE", (0.0, 0.01))
    found = wake.measure(dsn, way, 2)
    assert len(found) == 2
    assert all(milliseconds > 0 for milliseconds in found)


def test_the_memory_of_a_worker_is_watched_until_its_backlog_is_gone(dsn: str) -> None:
    for measured in (memory.over_http, memory.by_handler):
        sizes, seconds = measured(dsn, 300)
        assert seconds > 0
        assert min(sizes) > 10
    with psycopg.connect(dsn) as conn:
        assert conn.execute("select count(*) from menzil.queue").fetchone() == (0,)


def test_a_worker_that_grows_by_a_tenth_is_told_from_one_that_does_not() -> None:
    assert (
        memory.fifth([90.0, 100.0, 100.0, 105.0, 110.0], 4) / memory.fifth([90.0, 100.0, 100.0, 105.0, 110.0], 1) == 1.1
    )
