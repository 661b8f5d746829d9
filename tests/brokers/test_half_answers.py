"""Half an answer and silence, payloads of no bytes, and texts of any kind."""

from __future__ import annotations

import asyncio

import pytest

from menzil.deliver.nats import Nats
from menzil.deliver.redis import Redis
from tests.brokers.servers import Valkey
from tests.brokers.stage import (
    completed,
    entries,
    failed,
    fresh,
    in_loop,
    message,
    nats_endpoint,
    redis_endpoint,
    speaking,
)
from tests.brokers.test_wire_faults import ack, greet_nats, peer, published


@pytest.mark.parametrize("piece", [b"", b"$", b"$3", b"$3\r\n1-"])
@in_loop
async def test_half_an_answer_of_redis_and_silence_settle_nothing(piece: bytes) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"PING\r\n")
        writer.write(b"+PONG\r\n")
        await reader.readuntil(b"payload\r\n")
        writer.write(b"$3\r\n1-0\r\n" + piece)
        await reader.read()

    async with peer(talk) as port, speaking(Redis) as broker:
        found = await broker.deliver_many([message(1), message(2)], redis_endpoint(port, "s", timeout_seconds=0.4))
        completed(found[0])
        assert failed(found[1])[0] == "unknown"
        assert broker.kept == 0


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.95])
@in_loop
async def test_half_an_answer_of_nats_and_silence_settle_nothing(share: float) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet_nats(reader, writer)
        first, second = await published(reader), await published(reader)
        last = ack(second, 2)
        writer.write(ack(first, 1) + last[: int(len(last) * share)])
        await reader.read()

    async with peer(talk) as port, speaking(Nats) as broker:
        found = await broker.deliver_many([message(1), message(2)], nats_endpoint(port, "s", timeout_seconds=0.4))
        completed(found[0])
        assert failed(found[1])[0] == "unknown"
        assert broker.kept == 0


@in_loop
async def test_a_payload_of_no_bytes_and_texts_of_any_kind_reach_redis(valkey: Valkey) -> None:
    stream = fresh("orders")
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        sent = message(content=b"", ordering_key="Müşteri\r\n7", headers={"X-City": "İzmir"})
        found = await broker.deliver_many(
            [sent, message(2, headers={"bad name": "x"}), message(3)], redis_endpoint(valkey.port, stream)
        )
        completed(found[0])
        assert failed(found[1])[0] == "message"
        completed(found[2])
        (_, first), (_, second) = await client.xrange(stream)
    assert first[b"payload"] == b""
    assert first[b"key"].decode() == "Müşteri\r\n7"
    assert first[b"h:x-city"].decode() == "İzmir"
    assert second[b"payload"] == b"3"
