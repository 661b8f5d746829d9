"""Messages of a queue of RabbitMQ become messages of menzil."""

from __future__ import annotations

import asyncio
import json
import struct
from typing import Any

import aio_pika
import psycopg
import pytest
from pamqp import commands

from menzil.bridge.runner import PAUSED
from menzil.bridge.source import SourceError
from menzil.deliver.amqp import Amqp
from menzil.deliver.amqp.frames import BODY, HEADER, framed
from menzil.embedded import Embedded
from menzil.model.errors import QueueFullError
from tests.bridge.stage import BACKENDS, once, one, running, until, waiting
from tests.brokers.amqp.peer import HEARTBEAT, Line, amqp_endpoint, peer
from tests.brokers.amqp.rabbit import Rabbit
from tests.brokers.amqp.readers import channel_of, held, new_queue
from tests.brokers.stage import completed, fresh, in_loop, speaking
from tests.brokers.test_mapping import CORRELATION, TRACE, full


def create(conn: psycopg.Connection, name: str, port: int, queue: str, /, **config: Any) -> None:
    whole = json.dumps({"host": "127.0.0.1", "port": port, "queue": queue, **config})
    conn.execute("select menzil.bridge_create(%s, 'amqp', %s::jsonb, 'work')", (name, whole))


@in_loop
async def test_messages_are_acknowledged_when_they_are_committed(db: str, conn: psycopg.Connection) -> None:
    seen: list[tuple[int, int]] = []

    async def talk(line: Line) -> None:
        await line.serve((b"1", "a"), (b"2", "b"), (b"3", None))
        while True:
            tag = await line.acknowledged()
            seen.append((tag, one(conn, "select count(*) from menzil.queue")))

    async with peer(talk) as port:
        create(conn, "b", port, "q", batch=2)
        progress = await once(db, "b")
        assert progress.taken == 3, one(conn, "select min(last_error) from menzil.dlq")
    assert waiting(conn) == [1, 2, 3]
    assert seen[-1] == (3, 3)
    assert all(count >= tag for tag, count in seen)


@in_loop
async def test_a_message_that_comes_again_becomes_one_message_if_it_has_an_id(
    db: str, conn: psycopg.Connection
) -> None:
    """The connection is lost before the server reads the ack. Without an id the message comes in twice."""

    async def first(line: Line) -> None:
        await line.serve((b'"with"', "a"), (b'"without"', None))
        await line.acknowledged()  # and forgotten, as by a server that dies

    async def second(line: Line) -> None:
        await line.serve((b'"with"', "a"), (b'"without"', None), (b'"another body"', "a"))
        while True:
            await line.acknowledged()

    async with peer(first, second) as port:
        create(conn, "b", port, "q")
        async with running(db, "b"):
            await until(lambda: len(waiting(conn)) == 4, "the rest")
    assert sorted(waiting(conn)) == ["another body", "with", "without", "without"]


@in_loop
async def test_a_queue_that_is_deleted_and_an_answer_that_is_none_are_said(db: str, conn: psycopg.Connection) -> None:
    async def gone(line: Line) -> None:
        await line.serve()
        line.say(commands.Basic.Cancel("menzil", True))
        await line.end()

    async def odd(line: Line) -> None:
        await line.serve()
        line.say(commands.Basic.Deliver("menzil", 1, False, "", "q"))
        line.say(commands.Basic.Deliver("menzil", 2, False, "", "q"))
        await line.end()

    async with peer(gone, odd) as port:
        create(conn, "b", port, "q")
        for words in ("the queue is gone", "a message is not complete"):
            with pytest.raises(SourceError, match=words):
                await once(db, "b")
    assert waiting(conn) == []


@in_loop
async def test_a_message_with_odd_properties_blocks_no_queue(db: str, conn: psycopg.Connection) -> None:
    """A binary correlation id, a time in nanoseconds, and one id and body as JSON and as something else."""

    async def talk(line: Line) -> None:
        await line.serve((b"1", "a"))
        odd = [
            struct.pack(">HHQH", 60, 0, 1, 0x0400) + b"\x02\xff\xfe",
            struct.pack(">HHQHQ", 60, 0, 1, 0x0040, 1_700_000_000_000_000_000),
            struct.pack(">HHQH", 60, 0, 1, 0x8080) + b"\x0atext/plain" + b"\x01a",
        ]
        for tag, properties in enumerate(odd, 2):
            line.say(commands.Basic.Deliver("menzil", tag, False, "", "q"))
            line.writer.write(framed(HEADER, properties) + framed(BODY, b"1"))
        while await line.acknowledged() < 4:
            pass
        await line.end()

    async with peer(talk) as port:
        create(conn, "b", port, "q")
        progress = await once(db, "b")
    assert (progress.taken, progress.refused) == (2, 2)
    assert conn.execute("select payload, content from menzil.queue order by id").fetchall() == [(1, None), (None, b"1")]
    letters = conn.execute("select content, last_error from menzil.dlq order by id").fetchall()
    assert all(content == b"1" and "cannot be read" in said for content, said in letters)


@in_loop
async def test_what_has_no_room_is_not_handed_back_again_and_again(db: str, conn: psycopg.Connection) -> None:
    """Quorum queues of RabbitMQ 4 throw a message away that came back 20 times."""
    acked: list[int] = []

    async def talk(line: Line) -> None:
        await line.serve(*((b"%d" % n, None) for n in range(4)))
        while True:
            acked.append(await line.acknowledged())

    async with peer(talk) as port:
        conn.execute("select menzil.channel_set('work', p_max_size => 2)")
        create(conn, "b", port, "q")
        async with running(db, "b") as runner:
            await until(lambda: waiting(conn) == [0, 1] and runner.progress.error is not None, "a full channel")
            conn.execute("select menzil.channel_set('work', p_max_size => 100)")
            await until(lambda: waiting(conn) == [0, 1, 2, 3], "the rest, over the only connection that there is")
            await until(lambda: acked[-1:] == [4], "the last acknowledgement")


@in_loop
async def test_a_message_is_held_while_the_database_is_away(
    db: str, conn: psycopg.Connection, server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new connection would be one more return of the message to its queue."""
    monkeypatch.setattr("menzil.bridge.runner.HEARTBEAT", 2.0)
    away, opened = asyncio.Event(), 0

    async def talk(line: Line) -> None:
        nonlocal opened
        opened += 1
        await line.serve(*([(b"1", "a")] if opened == 1 else [(b"2", "b")]))
        if opened == 1:
            await line.acknowledged()
            await away.wait()
            line.deliver(2, b"2", "b")
        while True:
            await line.acknowledged()

    name = conn.info.dbname
    async with peer(*[talk] * 50) as port:
        create(conn, "b", port, "q")
        async with running(db, "b") as runner:
            await until(lambda: waiting(conn) == [1], "the first message")
            beat, last = "select heartbeat_at from menzil.bridges", one(conn, "select heartbeat_at from menzil.bridges")
            await until(lambda: one(conn, beat) != last, "a heartbeat: the next one comes when the message is held")
            with psycopg.connect(server.dsn, autocommit=True) as admin:
                admin.execute(f"alter database {name} allow_connections false")
                try:
                    conn.execute(BACKENDS)
                    away.set()
                    await until(lambda: runner.progress.error not in (None, PAUSED), "a notice")
                    await asyncio.sleep(5)  # at least two heartbeats that find no database
                finally:
                    admin.execute(f"alter database {name} allow_connections true")
            await until(lambda: waiting(conn) == [1, 2], "the second message")
            await until(lambda: runner.progress.error is None, "a bridge without trouble")
    assert opened == 1


@in_loop
async def test_messages_that_are_large_wait_at_the_server(db: str, conn: psycopg.Connection) -> None:
    """A server counts messages and not bytes: 30 MB of them fit into what it may send ahead.

    The bridge gives them back and asks for fewer. A connection that takes nothing would be ended by RabbitMQ.
    """
    large = b'"' + b"x" * 1_000_000 + b'"'
    allowed: list[int] = []
    acked = 0

    async def talk(line: Line) -> None:
        nonlocal acked
        await line.greet(confirms=False, heartbeat=1)
        beats = asyncio.create_task(beat(line))
        tag = first = begun = 0  # sent, and acknowledged, over this channel; acknowledged before it
        try:
            while True:
                found, _ = await line.raw()
                match found:
                    case commands.Basic.Qos():
                        allowed.append(found.prefetch_count)
                        line.say(commands.Basic.QosOk())
                    case commands.Basic.Consume():
                        tag, first, begun = 0, 0, acked
                        line.say(commands.Basic.ConsumeOk("menzil"))
                    case commands.Basic.Ack():
                        acked += found.delivery_tag - first
                        first = found.delivery_tag
                    case commands.Queue.Declare():
                        line.say(commands.Queue.DeclareOk("q", 30, 1))
                        continue
                    case commands.Channel.Close():
                        line.say(commands.Channel.CloseOk())
                        continue
                    case _:
                        assert isinstance(found, commands.Channel.Open), found
                        line.say(commands.Channel.OpenOk())
                        continue
                while not isinstance(found, commands.Basic.Qos) and tag < min(first + allowed[-1], 30 - begun):
                    tag += 1
                    line.deliver(tag, large, f"{begun + tag}")
                    await line.writer.drain()
        finally:
            beats.cancel()

    async def beat(line: Line) -> None:
        while True:
            line.writer.write(HEARTBEAT)
            await asyncio.sleep(0.3)

    async with peer(talk) as port:
        conn.execute("select menzil.channel_set('work', p_max_size => 2)")
        create(conn, "b", port, "q")
        async with running(db, "b") as runner:
            await until(lambda: runner.progress.error is not None and len(allowed) > 1, "fewer messages")
            await asyncio.sleep(3)  # more than two heartbeats, which come because nothing is held up
            assert (allowed[0], one(conn, "select count(*) from menzil.queue")) == (500, 2)
            assert allowed[-1] <= 16
            conn.execute("select menzil.channel_set('work', p_max_size => 100)")
            await until(lambda: acked == 30, "all of them, over the only connection that there is")
    assert one(conn, "select count(*), count(distinct metadata #>> '{bridge,id}') from menzil.queue") == (30, 30)


def test_configs_are_checked(conn: psycopg.Connection) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({"queue": None}, "queue must be a text"),
        ({"qeue": "q"}, "'qeue' is not a key of the config of an amqp bridge"),
        ({"start": "earliest"}, "'start' is not a key"),
        ({"auth": {"username": "u", "password": "p"}}, "auth.type is needed"),
        ({"auth": {"type": "plain", "username": "u"}}, "auth.password is needed"),
        ({"auth": {"type": "external"}}, "tls.cert is needed"),
    ]
    for config, words in bad:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            create(conn, "b", 5672, "q", **config)
        assert words in str(refusal.value.diag.message_primary), refusal.value


@pytest.mark.slow
@in_loop
async def test_what_menzil_delivers_to_rabbitmq_comes_in_as_it_was(
    db: str, conn: psycopg.Connection, rabbit: Rabbit
) -> None:
    name, sent = fresh("in"), full()
    create(conn, "b", rabbit.port, name)
    async with channel_of(rabbit.port) as channel, speaking(Amqp) as broker:
        queue = await new_queue(channel, name)
        endpoint = amqp_endpoint(rabbit.port, name)
        for _ in range(2):  # the second one is a repeat with the same id
            completed(await broker.deliver(sent, endpoint))
        # What other programs send: no id, headers of every kind, another exchange, bytes.
        mixed: Any = {"x-number": 7, "x-yes": True, "x-table": {"a": 1}, "cloudEvents:source": "/shop"}
        properties = aio_pika.Message(b"\x00\xff", headers=mixed, content_type="application/octet-stream")
        await channel.default_exchange.publish(properties, name)
        await once(db, "b")
        assert await held(queue) == []
        columns = "payload, content, ordering_key, correlation_id, headers, metadata"
        first, second = conn.execute(f"select {columns} from menzil.queue order by id").fetchall()
    assert first[:4] == ({"order": 42}, None, "Müşteri 7", CORRELATION)
    assert first[4] == {"x-tenant": "acme", "x-city": "İzmir"}
    assert (first[5]["traceparent"], first[5]["bridge"]["id"]) == (TRACE, sent.wire_id)
    assert second[:4] == (None, b"\x00\xff", None, None)
    assert second[4] == {"x-number": "7", "x-yes": "true", "ce-source": "/shop"}
    assert second[5]["bridge"]["left_out"] == ["x-table"]


@pytest.mark.slow
@in_loop
async def test_what_has_no_room_stays_in_the_queue_of_rabbitmq(
    db: str, conn: psycopg.Connection, rabbit: Rabbit
) -> None:
    name = fresh("in")
    create(conn, "b", rabbit.port, name)
    async with channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        for n in range(10):
            await channel.default_exchange.publish(aio_pika.Message(b"%d" % n, message_id=f"m{n}"), name)
        conn.execute("select menzil.set_setting('max_queue_size', '4')")
        with pytest.raises(QueueFullError):
            await once(db, "b")
        few = len(waiting(conn))
        conn.execute("select menzil.set_setting('max_queue_size', '1000')")
        async with running(db, "b"):
            await until(lambda: len(waiting(conn)) == 10, "the rest")
        assert few <= 4
        assert waiting(conn) == list(range(10))
        assert await held(queue) == []


@pytest.mark.slow
@in_loop
async def test_a_second_process_waits_and_goes_on_in_order(db: str, conn: psycopg.Connection, rabbit: Rabbit) -> None:
    name = fresh("in")
    create(conn, "b", rabbit.port, name, batch=3)
    async with channel_of(rabbit.port) as channel:
        queue = await new_queue(channel, name)
        async with running(db, "b") as second:
            async with running(db, "b") as first:
                await until(lambda: "in exclusive use" in str(first.progress.error or second.progress.error), "a wait")
                for n in range(20):
                    await channel.default_exchange.publish(aio_pika.Message(b"%d" % n, message_id=f"m{n}"), name)
                await until(lambda: len(waiting(conn)) >= 10, "some")
            for n in range(20, 30):
                await channel.default_exchange.publish(aio_pika.Message(b"%d" % n, message_id=f"m{n}"), name)
            await until(lambda: len(waiting(conn)) == 30, "all")
        assert waiting(conn) == list(range(30))
        assert await held(queue) == []
