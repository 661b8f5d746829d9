"""Connections that break at the worst moment, and answers without a question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from menzil.deliver.nats import Nats
from menzil.deliver.protocol import Endpoint, Refused, Surroundings
from menzil.deliver.redis import Redis
from menzil.model.outcome import Complete, Defer
from tests.brokers.relay import Relay
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import (
    completed,
    entries,
    failed,
    fresh,
    in_loop,
    jetstream,
    message,
    nats_endpoint,
    redis_endpoint,
    speaking,
    stored,
)


@in_loop
async def test_a_reset_in_the_middle_of_an_answer_settles_only_whole_answers(valkey: Valkey) -> None:
    stream = fresh("orders")
    async with Relay(valkey.port) as relay, speaking(Redis) as broker, entries(valkey.port) as client:
        endpoint = redis_endpoint(relay.port, stream)
        completed(await broker.deliver(message(), endpoint))
        relay.cut_after = 57  # two answers of about 23 bytes, and a piece of the third
        found = await broker.deliver_many([message(n) for n in range(10)], endpoint)
        assert [isinstance(outcome, Complete) for outcome in found] == [True] * 2 + [False] * 8
        assert {failed(outcome)[0] for outcome in found[2:]} == {"unknown"}
        assert await client.xlen(stream) == 11  # all were written: what is not known is tried again
        completed(await broker.deliver(message(), endpoint))


@in_loop
async def test_a_reset_in_the_middle_of_an_acknowledgement_of_nats(nats_server: NatsServer) -> None:
    stream, subject = fresh("S"), fresh("s")
    async with (
        Relay(nats_server.port) as relay,
        speaking(Nats) as broker,
        jetstream(nats_server.port, stream, subject) as context,
    ):
        endpoint, batch = nats_endpoint(relay.port, subject), [message(n) for n in range(10)]
        completed(await broker.deliver(message(), endpoint))
        relay.cut_after = 100
        first = await broker.deliver_many(batch, endpoint)
        known = sum(isinstance(outcome, Complete) for outcome in first)
        assert known < 10
        assert {failed(outcome)[0] for outcome in first[known:]} == {"unknown"}
        again = [completed(outcome) for outcome in await broker.deliver_many(batch, endpoint)]
        assert all(said["duplicate"] for said in again)
        assert len(await stored(context, stream)) == 11


async def zombie(kind: type[Any], relay: Relay, endpoint: Endpoint) -> None:
    """A message hangs on an old connection and is sent again; a newer one follows; then the old bytes arrive."""
    async with speaking(kind) as broker:
        first, second = message(1, ordering_key="k"), message(2, ordering_key="k")
        completed(await broker.deliver(message(0, ordering_key="k"), endpoint))
        relay.hold()
        assert failed(await broker.deliver(first, endpoint))[0] == "unknown"
        completed(await broker.deliver(first, endpoint))
        completed(await broker.deliver(second, endpoint))
        assert relay.connections == 2
        relay.release()


@pytest.mark.parametrize(("dedup_seconds", "held"), [(0, [b"0", b"1", b"2", b"1"]), (60, [b"0", b"1", b"2"])])
@in_loop
async def test_bytes_of_a_connection_that_was_given_up_arrive_late_at_valkey(
    valkey: Valkey, dedup_seconds: int, held: list[bytes]
) -> None:
    """Without dedup_seconds a repeat comes after newer messages of its key: the documentation says so."""
    stream = fresh("orders")
    async with Relay(valkey.port) as relay, entries(valkey.port) as client:
        config = {"timeout_seconds": 3, "dedup_seconds": dedup_seconds}
        before = (await client.info("commandstats")).get("cmdstat_xadd", {"calls": 0})["calls"]
        await zombie(Redis, relay, redis_endpoint(relay.port, stream, **config))
        if dedup_seconds:
            calls = "cmdstat_evalsha"
            await _until(lambda: _calls(client, calls, 4))
        else:
            await _until(lambda: _calls(client, "cmdstat_xadd", before + 4))
        assert [found[b"payload"] for _, found in await client.xrange(stream)] == held


async def _calls(client: Any, name: str, count: int) -> bool:
    return bool((await client.info("commandstats")).get(name, {"calls": 0})["calls"] >= count)


async def _until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await condition():
            await asyncio.sleep(0.01)


@in_loop
async def test_bytes_of_a_connection_that_was_given_up_change_nothing_at_nats(nats_server: NatsServer) -> None:
    stream, subject = fresh("S"), fresh("s")
    async with Relay(nats_server.port) as relay, jetstream(nats_server.port, stream, subject) as context:
        reports: list[Any] = []

        async def note(one: Any) -> None:
            reports.append(one)

        async def has_four() -> bool:
            return len(reports) >= 4

        watcher = await context._nc.subscribe(subject, cb=note)
        await zombie(Nats, relay, nats_endpoint(relay.port, subject, timeout_seconds=3))
        await _until(has_four)  # the old bytes did arrive
        await watcher.unsubscribe()
        assert [one.data for one in await stored(context, stream)] == [b"0", b"1", b"2"]


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def peer(talk: Talk) -> AsyncIterator[int]:
    """A server that says what a test wants, which no real one would say on demand."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def greet_nats(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b'INFO {"headers":true,"max_payload":1000000}\r\n')
    await reader.readuntil(b"PING\r\n")
    writer.write(b"PONG\r\n")


async def published(reader: asyncio.StreamReader) -> bytes:
    """The subject on which one message wants its acknowledgement."""
    line = await reader.readuntil(b"\r\n")
    _, _, reply, _, total = line.split()
    await reader.readexactly(int(total) + 2)
    return reply


def ack(reply: bytes, sequence: int, **more: Any) -> bytes:
    body = json.dumps({"stream": "S", "seq": sequence, **more}).encode()
    return b"MSG %b 1 %d\r\n%b\r\n" % (reply, len(body), body)


@in_loop
async def test_acknowledgements_of_nats_count_for_their_own_message_only() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet_nats(reader, writer)
        replies = [await published(reader) for _ in range(4)]
        inbox = replies[0].rpartition(b".")[0]
        writer.write(ack(inbox + b".1-77", 9) + ack(inbox + b".1-x", 9) + ack(inbox + b".7-2", 9))  # unknown ones
        writer.write(ack(replies[3], 4) + ack(replies[3], 44) + ack(replies[0], 1))  # out of order, and twice
        writer.write(b"MSG %b 1 2\r\nOK\r\n" % replies[1])  # no acknowledgement of a stream
        writer.write(ack(replies[1], 0) + ack(replies[2], 3, stream=""))
        await reader.read()

    async with peer(talk) as port, speaking(Nats) as broker:
        endpoint = nats_endpoint(port, "s", timeout_seconds=0.5)
        found = await broker.deliver_many([message(n) for n in range(4)], endpoint)
        assert [isinstance(outcome, Complete) for outcome in found] == [True, False, False, True]
        assert completed(found[3])["sequence"] == 4
        assert {failed(outcome)[0] for outcome in found[1:3]} == {"unknown"}


@in_loop
async def test_a_late_acknowledgement_of_an_earlier_batch_settles_nothing() -> None:
    seen: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet_nats(reader, writer)
        first = await published(reader)
        seen.append(first)
        writer.write(ack(first, 1))
        await published(reader)
        writer.write(ack(first, 1) * 3)  # again, in the middle of the next batch
        await reader.read()

    async with peer(talk) as port, speaking(Nats) as broker:
        endpoint = nats_endpoint(port, "s", timeout_seconds=0.4)
        completed(await broker.deliver(message(1), endpoint))
        assert failed(await broker.deliver(message(2), endpoint))[0] == "unknown"
        assert len(seen) == 1  # both went over one connection


@in_loop
async def test_a_missing_permission_of_nats_blames_the_endpoint_at_once() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet_nats(reader, writer)
        await published(reader)
        writer.write(b"-ERR 'Permissions Violation for Publish to \"s\"'\r\n")
        await reader.read()

    async with peer(talk) as port, speaking(Nats) as broker:
        found = await broker.deliver_many([message(n) for n in range(3)], nats_endpoint(port, "s"))
        assert {failed(outcome)[0] for outcome in found} == {"endpoint"}


@pytest.mark.parametrize("extra", [b"$3\r\n1-1\r\n", b"!what\r\n", b"$70000\r\n", b"*99\r\n", b"-ERR no\r\n"])
@in_loop
async def test_a_reply_that_nobody_asked_for_ends_the_connection_of_redis(extra: bytes) -> None:
    connections: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await reader.readuntil(b"PING\r\n")
        writer.write(b"+PONG\r\n")
        await reader.readuntil(b"payload\r\n")
        writer.write(b"$3\r\n1-0\r\n" + extra)
        await reader.read()

    async with peer(talk) as port, speaking(Redis) as broker:
        endpoint = redis_endpoint(port, "s", timeout_seconds=60)
        completed(await broker.deliver(message(), endpoint))
        async with asyncio.timeout(60):
            while broker._kept.take((endpoint.id, endpoint.updated_at)) is not None:
                await asyncio.sleep(0.01)
        completed(await broker.deliver(message(), endpoint))
        assert len(connections) == 2


@in_loop
async def test_a_connection_that_is_in_use_when_its_address_is_forbidden_is_not_kept() -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"PING\r\n")
        writer.write(b"+PONG\r\n")
        await reader.readuntil(b"payload\r\n")
        asked.set()
        await answer.wait()
        writer.write(b"$3\r\n1-0\r\n")
        await reader.read()

    async with peer(talk) as port, speaking(Redis) as broker:
        endpoint = redis_endpoint(port, "s", timeout_seconds=60)
        under_way = asyncio.create_task(broker.deliver(message(), endpoint))
        await asyncio.wait_for(asked.wait(), 60)
        broker.refresh(Surroundings({"broker_allowed_networks": "10.0.0.0/8"}, "w"))
        answer.set()
        completed(await under_way)
        assert broker.kept == 0
        assert isinstance(await broker.deliver(message(), endpoint), Refused)


@in_loop
async def test_a_confirmation_that_is_still_to_come_answers_no_other_batch() -> None:
    """All messages are refused at once, and the server goes on to wait for its replicas."""
    connections: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await reader.readuntil(b"PING\r\n")
        writer.write(b"+PONG\r\n")
        await reader.readuntil(b"WAIT\r\n")
        if len(connections) == 1:
            writer.write(b"-NOREPLICAS Not enough good replicas to write.\r\n")
        else:
            writer.write(b"$3\r\n1-0\r\n:1\r\n")
        await reader.read()

    async with peer(talk) as port, speaking(Redis) as broker:
        endpoint = redis_endpoint(port, "s", timeout_seconds=60, durability="replicas", replicas=1)
        assert failed(await broker.deliver(message(), endpoint))[0] == "endpoint"
        assert broker.kept == 0
        completed(await broker.deliver(message(), endpoint))


@in_loop
async def test_what_a_broker_says_is_stored_without_the_message_and_without_secrets() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"PING\r\n")
        writer.write(b"+OK\r\n+PONG\r\n")
        said = b"-ERR hunter2 \x1b[31m unknown command 'XADD', with args beginning with: 'payload' 'card 4711'\r\n"
        for answer in (said, b"-ERR " + b"x" * 30000 + b"\r\n"):
            await reader.readuntil(b"payload\r\n")
            writer.write(answer)
        await reader.read()

    async with peer(talk) as port, speaking(Redis) as broker:
        endpoint = redis_endpoint(port, "s", auth={"password": "hunter2"})
        found = await broker.deliver_many([message(1), message(2)], endpoint)
        first, second = (failed(outcome)[1] for outcome in found)
        assert "unknown command 'XADD'" in first
        assert not [word for word in ("hunter2", "4711", "\x1b") if word in first]
        assert len(second) < 300


@in_loop
async def test_a_message_that_is_too_large_for_valkey_harms_no_other() -> None:
    with Valkey(**{"proto-max-bulk-len": "1mb"}) as server:
        async with speaking(Redis) as broker, entries(server.port) as client:
            batch = [
                message(1),
                message(content=b"x" * (1024 * 1024)),
                message(content=b"x" * (1024 * 1024 + 1)),
                message(4),
            ]
            found = await broker.deliver_many(batch, redis_endpoint(server.port, "s"))
            completed(found[0])
            completed(found[1])  # exactly as large as is allowed
            kind, reason = failed(found[2])
            assert kind == "message"
            assert "invalid bulk length" in reason
            assert found[3] == Defer()  # it was not read, so it is not to blame
            assert await client.xlen("s") == 2


@in_loop
async def test_a_message_that_is_too_large_for_nats_harms_no_other(nats_server: NatsServer) -> None:
    stream, subject = fresh("S"), fresh("s")
    async with speaking(Nats) as broker, jetstream(nats_server.port, stream, subject) as context:
        endpoint, limit = nats_endpoint(nats_server.port, subject), 1048576
        probe = failed(await broker.deliver(message(content=b"x" * limit), endpoint))
        head = int(probe[1].split()[3]) - limit
        batch = [
            message(1),
            message(content=b"x" * (limit - head)),
            message(content=b"x" * (limit - head + 1)),
            message(4),
        ]
        found = await broker.deliver_many(batch, endpoint)
        assert [isinstance(outcome, Complete) for outcome in found] == [True, True, False, True]
        assert failed(found[2])[0] == "message"
        assert len(await stored(context, stream)) == 3
