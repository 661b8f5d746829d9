"""The brokers of a run, NATS and Valkey: started, made ready, and read by other libraries when all is over."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import nats
import redis

from tests.brokers.servers import NatsServer, Server, Valkey
from tests.brokers.stage import stored
from tests.torture.history import Diary
from tests.torture.plan import BROKER, Plan

#: Longer than any retry of a run.
REMEMBERED = 3600
#: Where a broker channel goes: the broker, and whether repeats are dropped there.
CHANNELS = {"nats": ("nats", True), "valkey": ("valkey", False), "valkey_once": ("valkey", True)}
QUICK = {"timeout_seconds": 1, "connect_timeout_seconds": 1}


class Brokers:
    """Those that the channels of the plan need."""

    def __init__(self, plan: Plan) -> None:
        self.channels = [name for name, channel in plan.channels.items() if channel.serves == BROKER]
        needed = sorted({CHANNELS[name][0] for name in self.channels})
        # With everysec a write may wait for an fsync, and the reply does not wait for the write: a kill would lose it.
        self.servers: dict[str, Server] = {
            name: NatsServer() if name == "nats" else Valkey(appendfsync="always") for name in needed
        }

    def wait(self) -> None:
        """Wait until they answer."""
        ends = time.monotonic() + 60
        while not all(server._answers() for server in self.servers.values()):
            assert time.monotonic() < ends, "a broker does not answer"
            time.sleep(0.01)

    def make_ready(self) -> None:
        """Make the stream of NATS; Valkey makes its own."""
        self.wait()
        if "nats" in self.servers:
            asyncio.run(self._nats(make=True))

    def config(self, channel: str, ports: dict[str, int]) -> tuple[str, str]:
        """The protocol and the config of a channel's endpoint."""
        broker, once = CHANNELS[channel]
        if broker == "nats":
            config: dict[str, Any] = {"servers": [f"127.0.0.1:{ports[broker]}"], "subject": channel}
            return "nats", json.dumps(config | QUICK)
        config = {"host": "127.0.0.1", "port": ports[broker], "stream": channel}
        return "redis", json.dumps(config | QUICK | ({"dedup_seconds": REMEMBERED} if once else {}))

    def note(self, diary: Diary) -> None:
        """Write down all that they hold, in its order."""
        self.wait()
        for channel in self.channels:
            broker, once = CHANNELS[channel]
            rows = asyncio.run(self._nats()) if broker == "nats" else list(self._valkey(channel))
            for place, (wire_id, attempt, ref) in enumerate(rows):
                number = int(wire_id.split("_")[1])
                diary.note("stored", channel=channel, place=place, id=number, wire_id=wire_id, attempt=attempt, ref=ref)
            diary.note("broker.read", channel=channel, count=len(rows), once=once)

    async def _nats(self, make: bool = False) -> list[tuple[str, int, str]]:
        client = await nats.connect(f"nats://127.0.0.1:{self.servers['nats'].port}")
        try:
            context = client.jetstream()
            if make:
                await context.add_stream(name="LAB", subjects=["nats"], duplicate_window=REMEMBERED)
                return []
            found = await stored(context, "LAB")
            return [
                (one.headers["Nats-Msg-Id"], int(one.headers["menzil-attempt"]), json.loads(one.data)["ref"])
                for one in found
            ]
        finally:
            await client.close()

    def _valkey(self, stream: str) -> Iterator[tuple[str, int, str]]:
        with redis.Redis(port=self.servers["valkey"].port) as client:
            rows: list[Any] = client.xrange(stream)
            for _, found in rows:
                yield found[b"id"].decode(), int(found[b"attempt"]), json.loads(found[b"payload"])["ref"]

    def clean_up(self) -> None:
        """Remove their files."""
        for server in self.servers.values():
            server._place.cleanup()
