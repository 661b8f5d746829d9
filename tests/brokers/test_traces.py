"""Where deliveries are traced, each message of a batch has its own span, and the broker's consumer gets its context."""

from __future__ import annotations

import asyncio
from typing import Any

import menzil
from menzil import Worker
from tests.brokers.servers import Valkey
from tests.brokers.stage import entries, fresh
from tests.telemetry.sdk import installed, traceparent


def test_each_message_of_a_batch_carries_its_own_span(db: str, valkey: Valkey) -> None:
    stream = fresh("orders")

    async def read() -> list[Any]:
        async with entries(valkey.port) as client:
            return [found for _, found in await client.xrange(stream)]

    with installed() as sdk, menzil.Menzil(db) as mq:
        mq.set_setting("broker_allowed_networks", "127.0.0.0/8")
        mq.create_endpoint("valkey", "redis", {"host": "127.0.0.1", "port": valkey.port, "stream": stream})
        mq.send_batch("valkey", list(range(5)))
        assert Worker(db, janitors=False).run(once=True).delivered == 5
        spans = {span.attributes["messaging.message.id"]: traceparent(span) for span in sdk.spans("process valkey")}
    assert len(spans) == 5
    found = {row[b"id"].decode().split("_")[1]: row[b"h:traceparent"].decode() for row in asyncio.run(read())}
    assert found == spans
