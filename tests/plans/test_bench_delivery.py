"""What the benchmark says about workers is about deliveries that happened: all of them, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest

from bench import bouncer
from bench.peers import entrants
from bench.peers.contest import ContestError, Entrant, measure
from bench.peers.home import Home, UnavailableError
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


@pytest.mark.parametrize("entrant", [entrants.menzil("menzil"), entrants.pgmq("delete"), entrants.pgmq("archive")])
def test_an_entrant_ends_every_message(dsn: str, entrant: Entrant) -> None:
    found = measure(entrant, dsn, 250)
    assert found.reading.rate > 0
    assert found.reading.cpu >= found.own > 0


def test_an_entrant_that_leaves_messages_behind_is_found_out(dsn: str) -> None:
    entrant = entrants.pgmq("delete")
    lazy = replace(entrant, left="select count(*) + 1 from pgmq_q")
    with pytest.raises(ContestError, match=r"handled 100 of 100 messages and left \(1,\)"):
        measure(lazy, dsn, 100)


def test_a_peer_that_cannot_be_installed_says_why_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with Home() as home:
        for _ in range(2):
            with pytest.raises(UnavailableError, match="node and npm are not installed"):
                home.node()


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
