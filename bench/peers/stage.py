"""A player's side of the contest: `python -m bench.peers.play_NAME VERB …`, connected by the environment.

Runs in the environment of a peer, so it needs nothing but Python. It says "ready", then answers each line it is asked
with a line; it ends when its standard input ends.

    install            make tables
    fill COUNT         send so many
    drain MODE COUNT   work until they are gone
    send, batch        "SECONDS": send for so long; "one": send one message and tell when
    work               a worker with the settings people begin with; tells of each message when it is handled
    churn              "SECONDS": send batches of 100 to a tuned worker for so long
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

BODY = {"order": 1, "customer": "customer-1", "status": "paid", "note": "x" * 30}
BATCH = 1000
CHURN = 100  # messages of one batch of the churn
AHEAD = 400  # messages that may wait while it lasts
WARM_UP = {"send": 20, "batch": 2}
PATIENCE = 5.0  # seconds for the last messages of a slice

Handled = Callable[[int], None]


class Player:
    """One peer. `work` starts a worker in the background that calls `handled` with a number of messages."""

    async def install(self) -> None:
        raise NotImplementedError

    async def open(self) -> None:
        raise NotImplementedError

    async def send(self) -> None:
        raise NotImplementedError

    async def batch(self, size: int) -> None:
        raise NotImplementedError

    async def feed(self, size: int) -> None:
        """The same beside a worker in one event loop."""
        await self.batch(size)

    async def work(self, mode: str, handled: Handled) -> None:
        raise NotImplementedError

    async def drain(self, mode: str, count: int, handled: Handled) -> None:
        raise NotImplementedError


def tell(**facts: float) -> None:
    print(json.dumps(facts), flush=True)


async def asked() -> str:
    """The next line, or nothing at the end."""
    line: str = await asyncio.to_thread(sys.stdin.readline)
    return line.strip()


async def act(player: Player, verb: str, words: list[str]) -> None:
    """Do what the command line says."""
    if verb == "install":
        return await player.install()
    if verb == "drain":
        return await _drain(player, words[0], int(words[1]))
    if verb == "churn":
        return await _churn(player)
    if verb == "work":
        return await _work(player)
    await player.open()
    if verb == "fill":
        left = int(words[0])
        while left > 0:
            await player.batch(min(left, BATCH))
            left -= BATCH
        return None
    if verb == "send":
        return await _send(player.send, 1, WARM_UP[verb])
    return await _send(lambda: player.batch(BATCH), BATCH, WARM_UP[verb])


async def _send(step: Callable[[], Awaitable[None]], units: int, warm_up: int) -> None:
    for _ in range(warm_up):
        await step()
    print("ready", flush=True)
    while line := await asked():
        if line == "one":
            print(time.monotonic_ns(), flush=True)
            await step()
            continue
        done, cpu, began, seconds = 0, time.process_time(), time.monotonic(), float(line)
        while (now := time.monotonic() - began) < seconds:
            await step()
            done += units
        tell(units=done, seconds=now, cpu=time.process_time() - cpu)


async def _drain(player: Player, mode: str, count: int) -> None:
    began, cpu, handled = 0.0, 0.0, 0

    def one_more(number: int) -> None:
        nonlocal began, cpu, handled
        if not handled:
            began, cpu = time.monotonic(), time.process_time()
        handled += number

    await player.drain(mode, count, one_more)
    tell(began=began, ended=time.monotonic(), cpu=time.process_time() - cpu, handled=handled)


async def _work(player: Player) -> None:
    await player.work("default", lambda _: print(time.monotonic_ns(), flush=True))
    print("ready", flush=True)
    while await asked():
        pass
    os._exit(0)  # threads still wait for messages


async def _churn(player: Player) -> None:
    sent = handled = 0

    def more(number: int) -> None:
        nonlocal handled
        handled += number

    await player.open()
    await player.work("tuned", more)
    print("ready", flush=True)
    while line := await asked():
        before, cpu, began, seconds = handled, time.process_time(), time.monotonic(), float(line)
        while (now := time.monotonic() - began) < seconds:
            if sent - handled < AHEAD:
                await player.feed(CHURN)
                sent += CHURN
            else:
                await asyncio.sleep(0.001)
        facts = {"units": handled - before, "seconds": now, "cpu": time.process_time() - cpu}
        ends = time.monotonic() + PATIENCE
        while handled < sent and time.monotonic() < ends:
            await asyncio.sleep(0.005)
        tell(**facts)
    os._exit(0)


def main(player: Player, runner: Callable[[Coroutine[Any, Any, None]], object] | None = None) -> None:
    """Run it; `runner` is another asyncio.run."""
    run = runner or asyncio.run
    run(act(player, sys.argv[1], sys.argv[2:]))
