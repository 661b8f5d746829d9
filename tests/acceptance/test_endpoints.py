"""Workers that deliver to endpoints over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from tests.acceptance.crew import Crew, until
from tests.acceptance.receiver import Receiver, receiver


@pytest.fixture
def hook(crew: Crew) -> Iterator[Receiver]:
    """An endpoint named hook, and the server behind it."""
    crew.ask("select menzil.set_setting('http_allow_internal_urls', 'true')")
    with receiver() as there:
        config = {"url": there.url, "timeout_seconds": 120}
        crew.ask("select menzil.create_endpoint('hook', 'http', %s::jsonb)", json.dumps(config))
        yield there


def send(crew: Crew, *bodies: str) -> None:
    for body in bodies:
        crew.ask("select menzil.send('hook', to_jsonb(%s::text))", body)


def test_a_worker_without_a_program_delivers_to_every_endpoint(crew: Crew, hook: Receiver) -> None:
    send(crew, "a", "b")
    worker = crew.drain(app=None)
    assert sorted(map(json.loads, hook.bodies)) == ["a", "b"]
    assert crew.completed("hook") == 2
    assert "serving=(endpoints)" in worker.says("started")
    assert "delivered=2" in worker.says("stopped")


def test_a_changed_config_counts_from_the_next_message_on(crew: Crew, hook: Receiver) -> None:
    crew.start(app=None)
    send(crew, "first")
    until(lambda: crew.completed("hook") == 1, "the first")
    with receiver() as other:
        crew.ask("select menzil.alter_endpoint('hook', %s::jsonb)::text", json.dumps({"url": other.url}))
        send(crew, "second")
        until(lambda: crew.completed("hook") == 2, "the second")
        assert (len(hook.bodies), len(other.bodies)) == (1, 1)


def test_an_address_that_was_just_allowed_is_delivered_to(crew: Crew, hook: Receiver) -> None:
    """A refusal makes a dead letter, so it must not rest on settings that the worker read some seconds ago."""
    crew.ask("select menzil.set_setting('http_allow_internal_urls', 'false')")
    crew.start(app=None)
    send(crew, "too early")
    until(lambda: crew.ask("select count(*) from menzil.dlq") == 1, "the refusal")
    crew.ask("select menzil.set_setting('http_allow_internal_urls', 'true')")
    send(crew, "at once")
    until(lambda: crew.completed("hook") == 1, "the delivery")
    assert [json.loads(body) for body in hook.bodies] == ["at once"]
    assert crew.ask("select count(*) from menzil.dlq") == 1


def test_one_probe_goes_through_a_half_open_circuit_however_many_workers_there_are(crew: Crew, hook: Receiver) -> None:
    crew.ask("select menzil.set_setting('circuit_breaker_threshold', '1')")
    crew.conn.execute("update menzil.endpoints set retry_policy = '{\"base_delay_seconds\": 0.01}' where name = 'hook'")
    hook.status = 500
    send(crew, "first")
    workers = [crew.start(app=None) for _ in range(2)]
    state = "select circuit from menzil.gate where channel_id = (select id from menzil.endpoints where name = 'hook')"
    until(lambda: crew.ask(state) == 2, "an open circuit")
    refused = len(hook.bodies)
    send(crew, *"abcdefgh")
    hook.gate.clear()
    hook.status = 200
    # The cooldown is over; the lane rests until then, too.
    crew.conn.execute("update menzil.gate set probe_at = clock_timestamp() - interval '1 s' where circuit = 2")
    crew.conn.execute("update menzil.lane set next_at = clock_timestamp() - interval '1 s', v = v + 1 where push")
    until(lambda: len(hook.bodies) > refused, "the probe")
    for _ in range(5):  # nobody gets another message while it is out
        assert crew.ask("select count(*) from menzil.message_dequeue(1000, 10, null, null, true)") == 0
    assert len(hook.bodies) == refused + 1
    hook.gate.set()
    until(lambda: crew.completed("hook") == 9, "all delivered")
    assert crew.ask(state) == 0
    assert [worker.stop() for worker in workers] == [0, 0]


def test_an_endpoint_of_a_protocol_nobody_knows_waits_for_a_worker_that_does(crew: Crew, hook: Receiver) -> None:
    send(crew, "a")
    with crew.conn.transaction():
        crew.conn.execute("set local session_replication_role = replica")  # no trigger: an endpoint keeps its protocol
        crew.conn.execute("update menzil.channel set protocol = 'pigeon' where name = 'hook'")
    worker = crew.drain(app=None)
    assert "does not know the protocol 'pigeon'" in worker.says("failed channel=hook")
    error = crew.ask("select last_error from menzil.queue where retry_count = 1")
    assert error.startswith("[RETRYABLE] This worker does not know")
    assert hook.bodies == []


@pytest.mark.parametrize("value", ["0", "-5", "Mon, 16 Nov 2020 01:00:00 GMT", "1"])
def test_an_endpoint_that_asks_for_no_wait_does_not_use_up_the_retries(crew: Crew, hook: Receiver, value: str) -> None:
    crew.ask("select menzil.set_setting('circuit_breaker_threshold', '1000')")
    hook.status, hook.headers = 429, {"Retry-After": value}
    send(crew, *map(str, range(20)))
    crew.drain(app=None)
    assert len(hook.bodies) == 20  # one try each: the retry policy says 10 seconds
    waits = "select min(next_retry_at - ended_at) from menzil.queue q join menzil.attempts a on a.message_id = q.id"
    assert crew.ask(f"select ({waits}) >= interval '10 s'")
    assert crew.ask("select count(*) from menzil.queue where retry_count = 1") == 20
    assert crew.ask("select count(*) from menzil.dlq") == 0


def test_a_name_that_means_nothing_is_refused_at_once(crew: Crew) -> None:
    worker = crew.start("--channels", "hoook", app=None, ready=False)
    assert worker.ends() == 2
    assert any("neither a handler nor an endpoint 'hoook'" in line for line in worker.lines)


def test_an_endpoint_that_hangs_does_not_hold_up_the_others(crew: Crew, hook: Receiver) -> None:
    hook.gate.clear()
    with receiver() as other:
        crew.ask("select menzil.create_endpoint('other', 'http', %s::jsonb)", json.dumps({"url": other.url}))
        send(crew, *"abc")
        crew.start("--concurrency", "2", "--no-janitors", app=None)
        until(lambda: len(hook.bodies) >= 2, "every slot to hang")
        crew.ask("select menzil.send('other', '1')")
        # Before the deadline of those that hang.
        until(lambda: crew.completed("other") == 1, "the other endpoint")
        assert crew.ask("select count(*) from menzil.queue where channel = 'hook' and num_attempts = 1") == 3


def test_a_role_that_may_only_work_can_do_all_that_a_worker_does(crew: Crew, hook: Receiver) -> None:
    crew.conn.execute("drop role if exists courier")
    crew.conn.execute("create role courier login password 'horse' in role menzil_worker")
    try:
        send(crew, "a")
        crew.send("quick", "b")
        dsn = make_conninfo(crew.dsn, user="courier", password="horse")
        workers = [crew.start("--once", app=app, MENZIL_DSN=dsn) for app in (None, "apps:app")]
        assert [worker.ends() for worker in workers] == [0, 0]
        assert (crew.completed("hook"), crew.completed("quick")) == (1, 1)
        said = [line for worker in workers for line in worker.lines]
        assert [line for line in said if "WARNING" in line or "ERROR" in line] == []
        assert crew.ask("select count(*) from menzil.jobs where last_error is not null") == 0
        assert crew.ask("select count(*) from menzil.jobs where last_count is null") == 0
    finally:
        crew.conn.execute("drop role courier")
