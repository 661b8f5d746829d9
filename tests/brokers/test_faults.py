"""Brokers that die, freeze or fall silent: what was acknowledged is stored, in order, and under one id."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

import pytest

from menzil.deliver.broker.protocol import Broker
from menzil.deliver.nats import Nats
from menzil.deliver.protocol import Endpoint
from menzil.deliver.redis import Redis
from menzil.model.message import Message
from menzil.model.outcome import Complete
from tests.brokers.relay import Relay
from tests.brokers.servers import NatsServer, Server, Valkey
from tests.brokers.stage import entries, in_loop, jetstream, message, nats_endpoint, redis_endpoint, speaking, stored

KEYS = 20
DEADLINE = 0.5

Row = tuple[str, str]  # ordering key, id


class Story:
    """Messages of some keys, one of a key at a time; a failed one is tried again before the next of its key."""

    def __init__(self, broker: Broker, endpoint: Endpoint) -> None:
        self.broker, self.endpoint = broker, endpoint
        self.heads: dict[str, Message] = {}
        self.acknowledged: list[Row] = []
        self.sent: dict[str, list[str]] = {f"k{n}": [] for n in range(KEYS)}
        self.failures = 0

    async def round(self) -> int:
        """One batch; return how many were acknowledged."""
        for key, ids in self.sent.items():
            if key not in self.heads:
                self.heads[key] = message(len(ids), ordering_key=key)
                ids.append(self.heads[key].wire_id)
        batch = list(self.heads.values())
        done = 0
        for one, outcome in zip(batch, await self.broker.deliver_many(batch, self.endpoint), strict=True):
            key = str(one.ordering_key)
            if isinstance(outcome, Complete):
                self.acknowledged.append((key, one.wire_id))
                del self.heads[key]
                done += 1
            else:
                self.failures += 1
        return done

    async def succeed(self, rounds: int, seconds: float = 60.0) -> float:
        """Go on until so many rounds were acknowledged; return the seconds until the first one."""
        began, first, done = monotonic(), None, 0
        while done < rounds:
            assert monotonic() < began + seconds, "the broker never came back"
            if await self.round() == KEYS:
                done += 1
                first = first or monotonic() - began
            else:
                await asyncio.sleep(0.01)
        return first or 0.0

    async def fail(self) -> None:
        """Go on until a batch fails."""
        ends = monotonic() + 60
        while not self.failures:
            assert monotonic() < ends, "nothing ever failed"
            await self.round()


async def read_redis(port: int) -> list[Row]:
    async with entries(port) as client:
        return [(found[b"key"].decode(), found[b"id"].decode()) for _, found in await client.xrange("s")]


def check(story: Story, rows: list[Row], *, once: bool) -> None:
    assert set(story.acknowledged) <= set(rows), "an acknowledged message is not there"
    if once:
        assert len(set(rows)) == len(rows), "a message is there twice"
    for key, sent in story.sent.items():
        seen = list(dict.fromkeys(id for its, id in rows if its == key))
        assert seen == sent[: len(seen)], "messages of one key are out of order"


async def kill(server: Server, relay: Relay) -> Callable[[], Awaitable[None]]:
    server.kill()

    async def heal() -> None:
        server.start()

    return heal


async def stop(server: Server, relay: Relay) -> Callable[[], Awaitable[None]]:
    server.stop()

    async def heal() -> None:
        server.start()

    return heal


async def freeze(server: Server, relay: Relay) -> Callable[[], Awaitable[None]]:
    server.freeze()

    async def heal() -> None:
        server.thaw()

    return heal


async def swallow(server: Server, relay: Relay) -> Callable[[], Awaitable[None]]:
    relay.swallow = True

    async def heal() -> None:
        relay.swallow = False

    return heal


async def mute(server: Server, relay: Relay) -> Callable[[], Awaitable[None]]:
    """What is sent arrives, and the acknowledgements do not: every message is written at least twice."""
    relay.mute = True

    async def heal() -> None:
        relay.mute = False

    return heal


FAULTS = [kill, stop, freeze, swallow, mute]


async def live_through(story: Story, server: Server, relay: Relay, fault: Callable[..., Awaitable[object]]) -> None:
    await story.succeed(3)
    heal = await fault(server, relay)
    await story.fail()
    await heal()  # type: ignore[operator]
    assert await story.succeed(3) <= 2.0 + DEADLINE, "the first success came late"


@pytest.mark.parametrize("dedup_seconds", [0, 60])
@pytest.mark.parametrize("fault", FAULTS)
@in_loop
async def test_a_stream_of_valkey_has_what_was_acknowledged(
    fault: Callable[..., Awaitable[object]], dedup_seconds: int
) -> None:
    # With everysec a write waits up to two seconds for an fsync under way, and the reply does not wait for the write.
    with Valkey(appendfsync="always") as server:
        async with Relay(server.port) as relay, speaking(Redis) as broker:
            config = {"timeout_seconds": DEADLINE, "dedup_seconds": dedup_seconds}
            story = Story(broker, redis_endpoint(relay.port, "s", **config))
            await live_through(story, server, relay, fault)
            rows = await read_redis(server.port)
            check(story, rows, once=dedup_seconds > 0)
            if fault is mute and not dedup_seconds:
                assert len(rows) > len(set(rows))  # the fault does what it says


@pytest.mark.parametrize("fault", FAULTS)
@in_loop
async def test_a_stream_of_nats_has_what_was_acknowledged_once(fault: Callable[..., Awaitable[object]]) -> None:
    with NatsServer() as server:
        async with Relay(server.port) as relay, speaking(Nats) as broker:
            async with jetstream(server.port, "S", "s"):
                pass
            story = Story(broker, nats_endpoint(relay.port, "s", timeout_seconds=DEADLINE))
            await live_through(story, server, relay, fault)
            async with jetstream(server.port, "S", "s") as context:
                found = await stored(context, "S")
            check(story, [(one.headers["menzil-key"], one.headers["Nats-Msg-Id"]) for one in found], once=True)
