"""Every row of the mapping, as the library that most people use reads it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from menzil.deliver.nats import Nats
from menzil.deliver.redis import Redis
from menzil.model.message import Message
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import (
    completed,
    entries,
    fresh,
    in_loop,
    jetstream,
    message,
    nats_endpoint,
    redis_endpoint,
    speaking,
    stored,
)

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CORRELATION = UUID("11111111-2222-3333-4444-555555555555")


def full(**more: Any) -> Message:
    """A message with everything that a message may have."""
    options: dict[str, Any] = {
        "ordering_key": "Müşteri 7",
        "correlation_id": CORRELATION,
        "headers": {"X-Tenant": "acme", "Content-Type": "application/vnd.shop+json", "X-City": "İzmir"},
        "metadata": {"event_type": "order.paid", "traceparent": TRACE, "tracestate": "a=b", "subject": "order 42"},
        "attempt": 3,
        "created_at": datetime(2026, 1, 2, 3, 4, 5, 678901, UTC),
        "expires_at": datetime.now(UTC) + timedelta(seconds=100),
    }
    return message({"order": 42}, **(options | more))


@in_loop
async def test_redis_py_reads_every_field(valkey: Valkey) -> None:
    stream, sent = fresh("orders"), full()
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        outcome = await broker.deliver(sent, redis_endpoint(valkey.port, stream, headers={"X-Shop": "1"}))
        ((entry, found),) = await client.xrange(stream)
        said = completed(outcome)
        assert said.pop("duration_ms") >= 0
        assert said == {
            "stream": stream,
            "entry": entry.decode(),
            "duplicate": False,
            "correlation_id": str(CORRELATION),
        }
        assert json.loads(found.pop(b"payload")) == {"order": 42}
        assert {name.decode(): value.decode() for name, value in found.items()} == {
            "id": sent.wire_id,
            "type": "order.paid",
            "content_type": "application/vnd.shop+json",
            "attempt": "3",
            "ts": "2026-01-02T03:04:05.678901Z",
            "key": "Müşteri 7",
            "correlation_id": str(CORRELATION),
            "h:x-tenant": "acme",
            "h:x-city": "İzmir",
            "h:x-shop": "1",
            "h:traceparent": TRACE,
            "h:tracestate": "a=b",
        }


@in_loop
async def test_redis_py_reads_the_least_that_a_message_has(valkey: Valkey) -> None:
    stream, sent = fresh("orders"), message(content=b"\x00\xff")
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        completed(await broker.deliver(sent, redis_endpoint(valkey.port, stream)))
        ((_, found),) = await client.xrange(stream)
    assert found[b"payload"] == b"\x00\xff"
    assert found[b"content_type"] == b"application/octet-stream"
    assert found[b"type"] == b"billing"
    assert set(found) == {b"id", b"type", b"payload", b"content_type", b"attempt", b"ts"}


@in_loop
async def test_nats_py_reads_every_header(nats_server: NatsServer) -> None:
    stream, subject, sent = fresh("S"), fresh("orders."), full()
    async with (
        speaking(Nats) as broker,
        jetstream(nats_server.port, stream, subject, allow_msg_ttl=True) as context,
    ):
        endpoint = nats_endpoint(nats_server.port, subject, stream=stream, message_ttl=True, headers={"X-Shop": "1"})
        said = completed(await broker.deliver(sent, endpoint))
        del said["duration_ms"]
        assert said == {"stream": stream, "sequence": 1, "duplicate": False, "correlation_id": str(CORRELATION)}
        (found,) = await stored(context, stream)
    assert found.subject == subject
    assert json.loads(found.data) == {"order": 42}
    headers = found.headers
    assert 90 < int(headers.pop("Nats-TTL").removesuffix("s")) <= 100
    assert headers == {
        "Nats-Msg-Id": sent.wire_id,
        "Nats-Expected-Stream": stream,
        "menzil-type": "order.paid",
        "menzil-attempt": "3",
        "menzil-key": "Müşteri 7",
        "correlation-id": str(CORRELATION),
        "content-type": "application/vnd.shop+json",
        "x-tenant": "acme",
        "x-city": "İzmir",
        "x-shop": "1",
        "traceparent": TRACE,
        "tracestate": "a=b",
    }


@in_loop
async def test_nats_py_reads_the_least_that_a_message_has(nats_server: NatsServer) -> None:
    stream, subject, sent = fresh("S"), fresh("orders."), message(content=b"")
    async with speaking(Nats) as broker, jetstream(nats_server.port, stream, subject) as context:
        completed(await broker.deliver(sent, nats_endpoint(nats_server.port, subject, dedup=False)))
        (found,) = await stored(context, stream)
    assert found.data in (b"", None)
    assert set(found.headers) == {"menzil-id", "menzil-type", "menzil-attempt", "content-type"}
    assert found.headers["menzil-id"] == sent.wire_id
    assert found.headers["content-type"] == "application/octet-stream"


EVENT = {
    "specversion": "1.0",
    "source": "/shop",
    "type": "order.paid",
    "time": "2026-01-02T03:04:05.678901Z",
    "subject": "order 42",
    "partitionkey": "Müşteri 7",
    "correlationid": str(CORRELATION),
}


@in_loop
async def test_cloudevents_in_a_stream_of_redis(valkey: Valkey) -> None:
    stream, sent = fresh("orders"), full()
    async with speaking(Redis) as broker, entries(valkey.port) as client:
        for mode in ("binary", "structured"):
            config = {"cloudevents": {"mode": mode, "source": "/shop"}}
            completed(await broker.deliver(sent, redis_endpoint(valkey.port, stream, **config)))
        (_, binary), (_, structured) = await client.xrange(stream)
    said = {name.decode()[3:]: value.decode() for name, value in binary.items() if name.startswith(b"ce_")}
    assert said == EVENT | {"id": sent.wire_id}
    assert json.loads(binary[b"payload"]) == {"order": 42}
    assert binary[b"content_type"] == b"application/vnd.shop+json"
    assert structured[b"content_type"] == b"application/cloudevents+json"
    document = json.loads(structured[b"payload"])
    assert document == EVENT | {
        "id": sent.wire_id,
        "datacontenttype": "application/vnd.shop+json",
        "data": {"order": 42},
    }


@in_loop
async def test_cloudevents_in_a_stream_of_nats(nats_server: NatsServer) -> None:
    stream, subject, sent = fresh("S"), fresh("orders."), full()
    async with speaking(Nats) as broker, jetstream(nats_server.port, stream, subject) as context:
        for mode in ("binary", "structured"):
            config = {"cloudevents": {"mode": mode, "source": "/shop"}, "dedup": False}
            completed(await broker.deliver(sent, nats_endpoint(nats_server.port, subject, **config)))
        binary, structured = await stored(context, stream)
    said = {name[3:]: value for name, value in binary.headers.items() if name.startswith("ce-")}
    assert said == EVENT | {
        "id": sent.wire_id,
        "subject": "order%2042",
        "partitionkey": "M%C3%BC%C5%9Fteri%207",
        "datacontenttype": "application/vnd.shop+json",
    }
    assert "content-type" not in binary.headers
    assert json.loads(binary.data) == {"order": 42}
    assert structured.headers["content-type"] == "application/cloudevents+json"
    assert json.loads(structured.data)["data"] == {"order": 42}
