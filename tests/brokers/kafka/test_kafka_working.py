"""Workers that deliver to Kafka, and the commands for its endpoints."""

from __future__ import annotations

import asyncio
import json
import threading

import psycopg

import menzil
from menzil import Worker
from tests.brokers.kafka.stage import MockCluster, header, records
from tests.brokers.stage import fresh, in_loop
from tests.brokers.test_working import conn, create, one, run, until
from tests.integration.cli.user import User

__all__ = ["conn"]


def test_what_is_sent_arrives_at_kafka_in_batches(db: str, conn: psycopg.Connection, cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"))
    create(conn, "kafka", "kafka", {"servers": cluster.servers, "topic": topic, "capture_response": True})
    with menzil.Menzil(db) as mq:
        mq.send_batch("kafka", list(range(1000)))
    assert run(db).delivered == 1000
    found = records(cluster, topic, 1000)
    assert sorted(int(each.value() or b"") for each in found) == list(range(1000))
    assert one(conn, "select count(*) from menzil.queue") == 0
    answers = one(conn, "select jsonb_agg(response) from menzil.archive")
    assert sorted((each.partition(), each.offset()) for each in found) == sorted(
        (answer["partition"], answer["offset"]) for answer in answers
    )
    assert {answer["topic"] for answer in answers} == {topic}
    assert {header(each, "menzil-type") for each in found} == {"kafka"}


@in_loop
async def test_a_login_that_is_refused_makes_no_dead_letters(
    db: str, conn: psycopg.Connection, cluster: MockCluster
) -> None:
    """The mock knows no logins, so it refuses any: as a cluster does after the password was changed there."""
    topic = cluster.create(fresh("orders"))
    config = {"servers": cluster.servers, "topic": topic}
    create(conn, "kafka", "kafka", config)
    conn.execute("select menzil.set_setting('circuit_breaker_cooldown', '5')")
    worker = Worker(db, janitors=False)
    serving = asyncio.create_task(worker.serve())
    with menzil.Menzil(db) as mq:
        mq.send("kafka", 0)
        await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the first delivery")
        auth = {"type": "scram-sha-512", "username": "u", "password": "canary-old"}
        conn.execute("select menzil.alter_endpoint('kafka', %s::jsonb)", (json.dumps(config | {"auth": auth}),))
        mq.send_batch("kafka", list(range(1, 1001)))
    await until(lambda: one(conn, "select circuit_state from menzil.endpoints") == "open", "an open circuit")
    assert one(conn, "select count(*) from menzil.dlq") == 0
    assert "_AUTHENTICATION" in one(conn, "select last_error from menzil.queue where last_error is not null limit 1")
    conn.execute("select menzil.alter_endpoint('kafka', %s::jsonb)", (json.dumps(config),))
    conn.execute("select menzil.reset_circuit_breaker('kafka')")
    await until(lambda: one(conn, "select count(*) from menzil.queue") == 0, "the rest")
    worker.stop()
    tally = await serving
    assert (tally.dead, tally.delivered) == (0, 1001)
    stored = [header(each, "menzil-id") for each in records(cluster, topic, 1001)]
    assert len(stored) == len(set(stored)) == 1001
    assert "canary" not in one(conn, "select coalesce(string_agg(a::text, ''), '') from menzil.attempts a")


def test_an_endpoint_of_kafka_is_made_and_tested(db: str, cluster: MockCluster) -> None:
    user, topic = User(db), cluster.create(fresh("orders"), 1)
    config = json.dumps({"servers": cluster.servers, "topic": topic, "capture_response": True})
    made = user.types("endpoint", "create", "orders", "--protocol", "kafka", "--config", config)
    assert made.exit_code == 0
    assert made.stderr.splitlines() == [
        "127.0.0.1 is a loopback address: deliveries there are refused until a setting allows them.",
        "hint: menzil settings set broker_allowed_networks 127.0.0.1/32",
    ]
    assert user.types("settings", "set", "broker_allowed_networks", "127.0.0.1/32").exit_code == 0
    assert f"kafka://{cluster.servers[0]}/{topic}" in user.types("endpoint", "list").stdout
    worker = Worker(db, janitors=False)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        tested = user.types("endpoint", "test", "orders")
    finally:
        worker.stop()
        thread.join(60)
    assert tested.exit_code == 0, tested.output
    assert topic in tested.stdout
    (found,) = records(cluster, topic, 1)
    assert json.loads(found.value() or b"")["type"] == "menzil.test"
