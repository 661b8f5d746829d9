"""Workers of the load lab, for `menzil worker bench.load.apps:NAME`."""

from __future__ import annotations

from bench.load.arrivals import Log
from bench.server import CHANNEL
from menzil import Worker
from menzil.model.message import Message

SMALL = 100  # channels beside the large one
SINGLE = "single"  # the channel of messages that come while the backlog is there
CHANNELS = [f"small-{number}" for number in range(SMALL)]

log = Log()
arrive = Worker()
crowd = Worker()


@arrive.handler(CHANNEL)
async def stamp(message: Message) -> None:
    """Keep when it was sent and when it arrived."""
    log.add(message.payload["at"])


@crowd.handler(CHANNEL)
async def large(_: Message) -> None:
    """One of very many."""
    log.add(-1)


@crowd.handler(*CHANNELS)
async def small(message: Message) -> None:
    """Keep whose it was, as a negative number: it was sent long ago."""
    log.add(-2 - message.payload["channel"])


@crowd.handler(SINGLE)
async def single(message: Message) -> None:
    """Keep when it was sent."""
    log.add(message.payload["at"])
