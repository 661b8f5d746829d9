"""Workers that deliver to Kafka, and the commands for its endpoints."""

from __future__ import annotations

import json

import psycopg

from tests.brokers.bodies import conn, deliver, make_and_test, rotate_password
from tests.brokers.kafka.stage import MockCluster, header, records
from tests.brokers.stage import fresh, in_loop

__all__ = ["conn"]  # a fixture


def test_what_is_sent_arrives_at_kafka_in_batches(db: str, conn: psycopg.Connection, cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"))
    answers = deliver(db, conn, "kafka", {"servers": cluster.servers, "topic": topic})
    found = records(cluster, topic, 1000)
    assert sorted(int(each.value() or b"") for each in found) == list(range(1000))
    assert sorted((each.partition(), each.offset()) for each in found) == sorted(
        (answer["partition"], answer["offset"]) for answer in answers
    )
    assert {answer["topic"] for answer in answers} == {topic}
    assert {header(each, "menzil-type") for each in found} == {"x"}


@in_loop
async def test_a_login_that_is_refused_makes_no_dead_letters(
    db: str, conn: psycopg.Connection, cluster: MockCluster
) -> None:
    """The mock knows no logins, so it refuses any: as a cluster does after the password was changed there."""
    topic = cluster.create(fresh("orders"))
    config = {"servers": cluster.servers, "topic": topic}
    auth = {"type": "scram-sha-512", "username": "u", "password": "canary-old"}

    async def rotate() -> None:
        conn.execute("select menzil.alter_endpoint('x', %s::jsonb)", (json.dumps(config | {"auth": auth}),))

    await rotate_password(db, conn, "kafka", before=config, after=config, rotate=rotate, error="_AUTHENTICATION")
    stored = [header(each, "menzil-id") for each in records(cluster, topic, 1001)]
    assert len(stored) == len(set(stored)) == 1001


def test_an_endpoint_of_kafka_is_made_and_tested(db: str, cluster: MockCluster) -> None:
    topic = cluster.create(fresh("orders"), 1)
    config = {"servers": cluster.servers, "topic": topic}
    assert topic in make_and_test(db, "kafka", config, f"kafka://{cluster.servers[0]}/{topic}")
    (found,) = records(cluster, topic, 1)
    assert json.loads(found.value() or b"")["type"] == "menzil.test"
