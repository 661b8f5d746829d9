"""Workers that part from their broker at the worst moment: a stop with a batch under way, a death before the settle,
a broker that is gone."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

import menzil
from menzil import Worker
from tests.brokers.amqp.conftest import rabbit
from tests.brokers.bodies import LEFT, conn, create, one, until
from tests.brokers.goals import KINDS, SERVERS, goal
from tests.brokers.mqtt.conftest import nats_mqtt
from tests.brokers.servers import free_port
from tests.brokers.stage import in_loop

__all__ = ["conn", "nats_mqtt", "rabbit"]  # fixtures

_WAITING = "from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
SETTLES = f"select count(*) {_WAITING} and query ~ 'message_(complete|next)'"
TERMINATE = f"select pg_terminate_backend(pid, 10000) {_WAITING}"
PAYLOAD = "x" * 1000


@pytest.fixture
def broker(kind: str, request: pytest.FixtureRequest) -> Any:
    """The broker, started before the clock of the test runs."""
    name = SERVERS[kind]
    return request.getfixturevalue(name) if name else None


@pytest.mark.parametrize("answers", ["in time", "never"])
@pytest.mark.parametrize("kind", KINDS)
@in_loop
async def test_a_worker_that_is_asked_to_stop_waits_for_acknowledgements_and_hands_back_the_rest(
    db: str, conn: psycopg.Connection, kind: str, answers: str, broker: Any, tmp_path: Path
) -> None:
    count = 50
    async with goal(kind, broker) as to:
        create(conn, "x", to.protocol, to.config | to.at_once | {"timeout_seconds": 40})
        program = [sys.executable, "-m", "menzil", "worker", "--dsn", db, "--lease", "60"]
        program += ["--grace", "40" if answers == "in time" else "0.5"]
        log = tmp_path / "log"
        with log.open("w") as said, menzil.Menzil(db) as mq:
            worker = subprocess.Popen(program, stderr=said, stdout=said, env=os.environ)
            try:
                mq.send("x", PAYLOAD)
                await until(lambda: one(conn, LEFT) == 0, "the first delivery")
                to.relay.hold_answers()
                before = to.relay.sent
                mq.send_batch("x", [PAYLOAD] * count)
                await until(lambda: to.relay.sent - before > count * len(PAYLOAD), "all of them at the broker")
                worker.send_signal(signal.SIGTERM)
                await until(lambda: "stopping" in log.read_text(), "the worker to hear it")
                if answers == "in time":
                    assert one(conn, LEFT) == count
                    to.relay.let_answers()
                assert await asyncio.to_thread(worker.wait, 50) == 0
            finally:
                if worker.poll() is None:
                    worker.kill()
                    worker.wait(60)
        to.relay.let_answers()
        if answers == "in time":
            assert one(conn, LEFT) == 0
            assert one(conn, "select max(num_attempts) from menzil.archive") == 1
        else:
            assert one(conn, LEFT) == count
            assert one(conn, "select count(*) from menzil.lease") == 0  # no other worker has to wait for them
            assert one(conn, "select coalesce(max(retry_count), 0) from menzil.queue") == 0
            again = Worker(db, janitors=False)
            serving = asyncio.create_task(again.serve())
            await until(lambda: one(conn, LEFT) == 0, "the second delivery")
            again.stop()
            assert (await serving).dead == 0
        ids = await to.ids(count + 1)
        assert len(set(ids)) == count + 1
        assert len(ids) <= (1 if answers == "in time" or to.drops_repeats else 2) * count + 1


@pytest.mark.parametrize("kind", KINDS)
@in_loop
async def test_a_worker_that_dies_before_it_settles_sends_the_same_id_again(
    db: str, conn: psycopg.Connection, kind: str, broker: Any
) -> None:
    async with goal(kind, broker) as to:
        create(conn, "x", to.protocol, to.config)
        conn.execute("select menzil.send('x', '1')")
        program = [sys.executable, "-m", "menzil", "worker", "--dsn", db, "--lease", "3"]
        with psycopg.connect(db) as blocker:
            to.relay.hold_answers()  # the worker has its lease, and waits for the login
            worker = subprocess.Popen(program, stderr=subprocess.DEVNULL, env=os.environ)
            try:
                await until(lambda: one(conn, "select count(*) from menzil.lease") == 1, "the lease")
                blocker.execute("select from menzil.lease for update")
                to.relay.let_answers()
                await until(lambda: one(conn, SETTLES) == 1, "the settle")  # it has the acknowledgement
            finally:
                worker.send_signal(signal.SIGKILL)
                worker.wait(60)
            conn.execute(TERMINATE)  # a server would finish the statement of a client that died
        first = list(await to.ids(1))
        assert len(first) == 1
        again = Worker(db)
        serving = asyncio.create_task(again.serve())
        await until(lambda: one(conn, LEFT) == 0, "the second delivery")
        again.stop()
        assert (await serving).delivered == 1
        repeats = 1 if to.drops_repeats else 2  # a broker that knows no ids leaves the repeat to the consumer
        assert await to.ids(repeats) == first * repeats


@pytest.mark.parametrize("kind", KINDS)
@in_loop
async def test_a_broker_that_is_gone_opens_the_circuit_and_gets_all_when_it_is_back(
    db: str, conn: psycopg.Connection, kind: str, broker: Any
) -> None:
    async with goal(kind, broker) as to:
        create(conn, "x", to.protocol, to.config | {"timeout_seconds": 40, "connect_timeout_seconds": 1})
        conn.execute("select menzil.set_setting('circuit_breaker_cooldown', '5')")
        there, to.relay.target = to.relay.target, free_port()
        worker = Worker(db, janitors=False)
        serving = asyncio.create_task(worker.serve())
        with menzil.Menzil(db) as mq:
            mq.send_batch("x", list(range(300)))
        await until(lambda: one(conn, "select circuit_state from menzil.endpoints") == "open", "an open circuit")
        assert one(conn, "select count(*) from menzil.dlq") == 0
        to.relay.target = there
        conn.execute("select menzil.reset_circuit_breaker('x')")
        await until(lambda: one(conn, LEFT) == 0, "the deliveries")
        worker.stop()
        tally = await serving
        assert (tally.dead, tally.delivered) == (0, 300)
        ids = await to.ids(300)
        assert len(ids) == len(set(ids)) == 300
