"""Partitions of Kafka, of the mock cluster, become messages."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types.json import Jsonb

from menzil.bridge.source import SourceError
from tests.bridge.mock_kafka import MockKafka
from tests.bridge.stage import create, once, one, running, until, waiting
from tests.brokers.stage import fresh, in_loop


@pytest.fixture(scope="session")
def kafka() -> Iterator[MockKafka]:
    with MockKafka() as cluster:
        yield cluster


@in_loop
async def test_records_become_messages_once(db: str, conn: psycopg.Connection, kafka: MockKafka) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic, batch=7)
    for n in range(20):
        kafka.write(topic, b"%d" % n, key=b"k%d" % (n % 3), headers=[("x-tenant", b"t"), ("menzil-id", b"m1")])
    assert (await once(db, "b")).taken == 20
    assert (await once(db, "b")).taken == 0
    kafka.write(topic, b"20", None, b"21")
    progress = await once(db, "b")
    assert (progress.taken, progress.refused) == (2, 1)
    assert sorted(waiting(conn)) == list(range(22))
    for key in range(3):
        ids = conn.execute("select payload from menzil.queue where ordering_key = %s order by id", (f"k{key}",))
        assert [row[0] for row in ids] == list(range(key, 20, 3))
    headers, about = one(conn, "select headers, metadata -> 'bridge' from menzil.queue where payload = '0'")
    assert headers == {"x-tenant": "t"}
    assert (about["id"], about["position"]) == ("m1", "0")
    assert about["partition"].startswith(f"{topic}/")


@in_loop
async def test_latest_begins_at_the_end(db: str, conn: psycopg.Connection, kafka: MockKafka) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic, start="latest")
    kafka.write(topic, b"1", b"2")
    assert (await once(db, "b")).taken == 0
    kafka.write(topic, b"3")
    assert (await once(db, "b")).taken == 1
    assert waiting(conn) == [3]


@in_loop
async def test_a_partition_that_the_topic_got_later_is_read_from_its_first_record(
    db: str, conn: psycopg.Connection, kafka: MockKafka
) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic, start="latest")
    kafka.write(topic, b"0", partition=0)
    kafka.write(topic, b"1", partition=1)
    assert (await once(db, "b")).taken == 0
    # The bridge began when there were two partitions, and the other two got records before it looked again.
    conn.execute("delete from menzil.bridge_position where partition in (%s, %s)", (f"{topic}/2", f"{topic}/3"))
    kafka.write(topic, b"2", partition=2)
    kafka.write(topic, b"3", partition=3)
    # What is forgotten begins as the config says.
    conn.execute("select menzil.bridge_seek('b', %s, null)", (f"{topic}/1",))
    assert (await once(db, "b")).taken == 2
    assert sorted(waiting(conn)) == [2, 3]


@in_loop
async def test_an_offset_that_the_broker_does_not_have_is_refused(
    db: str, conn: psycopg.Connection, kafka: MockKafka
) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic)
    kafka.write(topic, b"1")
    assert (await once(db, "b")).taken == 1
    conn.execute("select menzil.bridge_seek('b', %s, '500')", (f"{topic}/0",))
    with pytest.raises(SourceError, match="made anew"):
        await once(db, "b")


@in_loop
async def test_a_topic_that_was_made_anew_and_is_longer_by_now_is_not_read_on(
    db: str, conn: psycopg.Connection, kafka: MockKafka
) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic, batch=1)
    kafka.write(topic, b"0", b"1", partition=0)
    assert (await once(db, "b")).taken == 2
    kafka.write(topic, b"2", None, partition=0)
    assert (await once(db, "b")).taken == 1  # the same topic is read on
    with MockKafka() as other:  # the topic of this name in another cluster: with other records, and more of them
        other.topic(topic)
        other.write(topic, *(b"%d" % n for n in range(10, 17)), partition=0)
        config = {"servers": other.servers, "topic": topic, "start": "earliest"}
        conn.execute("select menzil.bridge_alter('b', %s)", (Jsonb(config),))
        with pytest.raises(SourceError, match=r"another record at 3 .* made anew"):
            await once(db, "b")
        conn.execute("select menzil.bridge_seek('b', %s, '0')", (f"{topic}/0",))
        assert (await once(db, "b")).taken == 7
        # Where it stands can be given back as it is shown.
        shown = one(conn, "select position from menzil.bridge_positions where partition = %s", f"{topic}/0")
        conn.execute("select menzil.bridge_seek('b', %s, %s)", (f"{topic}/0", shown))
        other.write(topic, b"17", partition=0)
        assert (await once(db, "b")).taken == 1
    assert waiting(conn) == [0, 1, 2, *range(10, 18)]


@in_loop
async def test_a_position_whose_record_is_ahead_of_it_passes_over_nothing(
    db: str, conn: psycopg.Connection, kafka: MockKafka
) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic)
    assert (await once(db, "b")).taken == 0
    kafka.write(topic, *(b"%d" % n for n in range(5)), partition=0)
    conn.execute("select menzil.bridge_seek('b', %s, '1#3.0123456789abcdef')", (f"{topic}/0",))
    assert (await once(db, "b")).taken == 4
    assert waiting(conn) == [1, 2, 3, 4]


@pytest.mark.parametrize("partition", ["orders", "order/0", "orders/x", "orders/01", "orders/", "/0"])
def test_what_is_no_partition_of_the_topic_is_refused(conn: psycopg.Connection, partition: str) -> None:
    create(conn, "b", "kafka", servers=["127.0.0.1:1"], topic="orders")
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="is not a partition of the topic 'orders'"):
        conn.execute("select menzil.bridge_seek('b', %s, '0')", (partition,))
    assert one(conn, "select count(*) from menzil.bridge_positions") == 0


@in_loop
async def test_a_seek_changes_no_other_partition(db: str, conn: psycopg.Connection, kafka: MockKafka) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic, start="latest")
    for part in range(4):
        kafka.write(topic, b"%d" % part, partition=part)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="has not run yet"):
        conn.execute("select menzil.bridge_seek('b', %s, '0')", (f"{topic}/0",))
    assert (await once(db, "b")).taken == 0
    with pytest.raises(psycopg.errors.UndefinedObject, match="has no partition"):
        conn.execute("select menzil.bridge_seek('b', %s, '0')", (f"{topic}/77",))
    conn.execute("select menzil.bridge_seek('b', %s, '0')", (f"{topic}/0",))
    assert (await once(db, "b")).taken == 1
    assert waiting(conn) == [0]


@in_loop
async def test_a_cluster_that_is_not_there_is_a_sentence(db: str, conn: psycopg.Connection) -> None:
    create(conn, "b", "kafka", servers=["127.0.0.1:1"], topic="none", connect_timeout_seconds=1)
    with pytest.raises(SourceError, match="Kafka"):
        await once(db, "b")


@in_loop
async def test_two_processes_take_each_record_once(db: str, conn: psycopg.Connection, kafka: MockKafka) -> None:
    topic = kafka.topic(fresh("in"))
    create(conn, "b", "kafka", servers=kafka.servers, topic=topic, batch=10)
    async with running(db, "b") as first, running(db, "b") as second:
        kafka.write(topic, *(b"%d" % n for n in range(1000)))
        await until(lambda: one(conn, "select taken from menzil.bridges") == 1000, "all records")
        await until(lambda: first.progress.moved + second.progress.moved > 0, "a lost race")
    assert sorted(waiting(conn)) == list(range(1000))
