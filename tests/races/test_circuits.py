"""Workers around one circuit: whoever comes first sends the probe, and nobody waits for anybody."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage


@pytest.fixture
def opened(stage: Stage) -> Stage:
    """An endpoint whose circuit is open, its rest over, and 20 messages wait."""
    stage.watcher.run("select menzil.create_endpoint('hook', 'http', %s)", Jsonb({"url": "https://example.com/"}))
    for _ in range(10):
        stage.watcher.run("select menzil.update_circuit_breaker((select id from menzil.endpoints), false)")
    stage.watcher.send_batch("hook", 20)
    stage.watcher.run("update menzil.gate set probe_at = clock_timestamp() where circuit = 2")
    stage.sweep()
    return stage


def state(stage: Stage) -> Any:
    return stage.watcher.one("select circuit_state from menzil.get_endpoint_health('hook')")


def test_four_workers_at_a_half_open_circuit_send_one_probe(opened: Stage):
    workers = [opened.hire() for _ in range(4)]
    barrier = threading.Barrier(4)

    def race(actor: Actor) -> list[Lease]:
        barrier.wait()
        return [lease for _ in range(5) for lease in actor.dequeue(10)]

    for _ in range(10):
        (probe,) = [lease for f in [opened.start(race, worker) for worker in workers] for lease in f.result()]
        assert state(opened) == "half_open"
        opened.watcher.run("select menzil.message_fail(%s, %s, 'no')", probe.id, probe.attempt)
        assert state(opened) == "open"
        opened.watcher.run("select menzil.maintain()")  # folds what the settle told, so that the gate knows it too
        opened.watcher.run("update menzil.gate set probe_at = clock_timestamp() where circuit = 2")
        opened.watcher.run("update menzil.lane set next_at = clock_timestamp() where next_at is not null")
    assert opened.watcher.one("select count(*) from menzil.event_log where event_type = 'circuit.half_open'") == 10


def test_a_settle_does_not_wait_for_a_consumer_who_holds_the_gate(opened: Stage):
    opened.watcher.run("select menzil.reset_circuit_breaker('hook')")
    (mine,) = opened.watcher.dequeue(1)
    holder = opened.hire()
    with holder.open():
        assert holder.dequeue(1)
        opened.watcher.run("select menzil.message_fail(%s, %s, 'no')", mine.id, mine.attempt)
    assert opened.watcher.one("select circuit_failure_count from menzil.get_endpoint_health('hook')") == 1


def test_an_open_transaction_that_failed_a_message_blocks_no_consumer_of_its_endpoint(opened: Stage):
    opened.watcher.run("select menzil.reset_circuit_breaker('hook')")
    slow, other = opened.hire(), opened.hire()
    (mine,) = slow.dequeue(1)
    with slow.open():
        slow.run("select menzil.message_fail(%s, %s, 'no')", mine.id, mine.attempt)
        assert len(other.dequeue(5)) == 5
