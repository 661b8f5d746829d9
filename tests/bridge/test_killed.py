"""Each record becomes one message though the bridge is killed with SIGKILL.

The long run prints its figures: pytest -m torture -s tests/bridge/test_killed.py
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import nats
import psycopg
import pytest

from tests.bridge.killing import killed
from tests.bridge.mock_kafka import MockKafka
from tests.bridge.stage import create, one, running, until
from tests.brokers.servers import NatsServer
from tests.brokers.stage import fresh

RECORDS, KILLS, MEASURED = 200_000, 10, 50_000
BODY = b"%d"
#: Records of a batch in the short runs: a quick machine takes 3,000 in six batches before anybody is killed.
FEW = 20


async def published(port: int, stream: str, first: int, last: int) -> None:
    """Fill a stream of JetStream."""
    client = await nats.connect(f"nats://127.0.0.1:{port}")
    try:
        context = client.jetstream(publish_async_max_pending=2000)
        if first == 0:
            await context.add_stream(name=stream, subjects=[stream])
        for number in range(first, last):
            await context.publish_async(stream, BODY % number)
        await context.publish_async_completed()
    finally:
        await client.close()


def produced(kafka: MockKafka, topic: str, first: int, last: int) -> None:
    for begin in range(first, last, 10_000):
        kafka.write(topic, *(BODY % number for number in range(begin, min(last, begin + 10_000))))


def from_nats(conn: psycopg.Connection, server: NatsServer, count: int, **more: Any) -> str:
    stream = fresh("KILLED")
    asyncio.run(published(server.port, stream, 0, count))
    create(conn, "b", "nats", servers=[f"127.0.0.1:{server.port}"], stream=stream, **more)
    return stream


def from_kafka(conn: psycopg.Connection, kafka: MockKafka, count: int, **more: Any) -> str:
    topic = kafka.topic(fresh("killed"))
    produced(kafka, topic, 0, count)
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic, **more)
    return topic


@pytest.mark.slow
def test_from_nats(db: str, conn: psycopg.Connection, nats_server: NatsServer) -> None:
    from_nats(conn, nats_server, 3000, batch=FEW)
    outcome = killed(db, conn, "b", 3000, 2, 1, 100)
    assert (outcome.kills, outcome.missing, outcome.twice) == (2, 0, 0)


@pytest.mark.slow
def test_from_kafka(db: str, conn: psycopg.Connection) -> None:
    with MockKafka() as kafka:
        from_kafka(conn, kafka, 3000, batch=FEW)
        outcome = killed(db, conn, "b", 3000, 2, 2, 100)
    assert (outcome.kills, outcome.missing, outcome.twice) == (2, 0, 0)


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    with open(f"/proc/{pid}/stat") as stat:
        words = stat.read().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


async def measured(db: str, conn: psycopg.Connection, total: int) -> str:
    """Take more records with a bridge that is left alone, and return its figures."""
    async with running(db, "b") as runner:
        await until(lambda: bool(one(conn, "select processes from menzil.bridges")), "a bridge at work")
        ours = (
            "select pid from pg_stat_activity where datname = current_database() and application_name = 'menzil bridge'"
        )
        await asyncio.sleep(1)
        pid = one(conn, ours)
        server, client, began = cpu_of(pid), time.process_time(), time.monotonic()
        conn.execute("select menzil.bridge_resume('b')")
        await until(lambda: one(conn, "select taken from menzil.bridges") >= total, "all records")
        seconds = time.monotonic() - began
        count = runner.progress.taken
        server, client = cpu_of(pid) - server, time.process_time() - client
    return (
        f"{count} records in {seconds:.1f} s: {count / seconds:.0f}/s, server {server / count * 1e6:.0f} µs, "
        f"bridge and this test {client / count * 1e6:.0f} µs of CPU per record"
    )


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_200000_from_nats(db: str, conn: psycopg.Connection, nats_server: NatsServer) -> None:
    stream = from_nats(conn, nats_server, RECORDS)
    outcome = killed(db, conn, "b", RECORDS, KILLS, 11, 1500)
    print(f"\nnats: {outcome}, {outcome.records / outcome.seconds:.0f}/s with the kills")
    assert (outcome.kills, outcome.missing, outcome.twice) == (KILLS, 0, 0)
    conn.execute("select menzil.bridge_pause('b')")
    asyncio.run(published(nats_server.port, stream, RECORDS, RECORDS + MEASURED))
    print("nats:", asyncio.run(measured(db, conn, RECORDS + MEASURED)))


@pytest.mark.torture
@pytest.mark.timeout(3600)
def test_200000_from_kafka(db: str, conn: psycopg.Connection) -> None:
    with MockKafka() as kafka:
        topic = from_kafka(conn, kafka, RECORDS)
        outcome = killed(db, conn, "b", RECORDS, KILLS, 12, 1500)
        print(f"\nkafka: {outcome}, {outcome.records / outcome.seconds:.0f}/s with the kills")
        assert (outcome.kills, outcome.missing, outcome.twice) == (KILLS, 0, 0)
        conn.execute("select menzil.bridge_pause('b')")
        produced(kafka, topic, RECORDS, RECORDS + MEASURED)
        print("kafka:", asyncio.run(measured(db, conn, RECORDS + MEASURED)))
