"""Whatever the other side does, the message gets the right outcome, by the deadline, and no connection is left."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from pathlib import Path

import pytest
import uvloop

from menzil.model.outcome import Complete, Fail
from tests.deliver.http.bad_receivers import BAD, SECONDS, Bad
from tests.deliver.http.receivers import raw
from tests.deliver.http.stage import deliver, endpoint, failed, in_loop, message, protocol, until

MARGIN = 20.0  # for a busy machine; a slot that is held longer is held for ever
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def test_the_table_has_every_kind_once() -> None:
    assert len({bad.name for bad in BAD}) == len(BAD) >= 24


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_bad_receiver_is_judged_by_the_deadline_and_leaks_nothing(bad: Bad, loop: str) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        before = runner.run(_warm_up())
        runner.run(_judge(bad))
        runner.run(until(lambda: _open_files() == before))  # what was dropped is closed in the next turns of the loop


def _open_files() -> int:
    place = Path("/proc/self/fd")
    return len(list(place.iterdir())) if place.is_dir() else 0


async def _warm_up() -> int:
    """Let the loop open what it keeps for itself (libuv sets a file aside when it first listens), and count."""
    async with raw(BAD[0].handle):
        pass
    await asyncio.sleep(0)
    return _open_files()


async def _judge(bad: Bad) -> None:
    # More than the kernel takes in for a receiver that never reads.
    large = message({"order": "x" * 8_000_000}) if bad.name == "never reads" else message()
    async with raw(bad.handle) as receiver, protocol() as http:
        started = time.monotonic()
        outcome = await http.deliver(large, endpoint(receiver.url, timeout_seconds=SECONDS))
        assert time.monotonic() - started < SECONDS + MARGIN
        assert receiver.connections == 1
        assert http.connections()[0] == 0
        if bad.reason is None:
            assert outcome == Complete()
        else:
            assert isinstance(outcome, Fail), outcome
            assert re.match(bad.reason, outcome.reason), outcome.reason
            assert (type(outcome.retry), outcome.retry) == (type(bad.retry), bad.retry)
            assert outcome.disable == bad.disable
            if bad.status:
                assert outcome.response is not None
                assert outcome.response["status"] == bad.status
            assert "\x1b" not in str(outcome)
        await http.close()
        assert http.connections() == (0, 0)


@in_loop
async def test_a_closed_port_refuses_the_connection() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port
        port = unused.getsockname()[1]
        outcome = failed(await deliver(f"http://127.0.0.1:{port}/"))
    assert outcome == Fail(f"Connection refused by 127.0.0.1:{port}")


@in_loop
async def test_a_port_that_does_not_take_the_connection_costs_the_connect_timeout() -> None:
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]  # the queue of the listener is full, and further SYNs are dropped
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        started = time.monotonic()
        outcome = failed(await deliver(f"http://127.0.0.1:{port}/", timeout_seconds=60, connect_timeout_seconds=0.3))
        for filler in fillers:
            filler.close()
    assert outcome == Fail(f"No connection to 127.0.0.1:{port} within 0.3 s (connecting)")
    assert time.monotonic() - started < 0.3 + MARGIN


@in_loop
async def test_a_receiver_that_floods_after_the_answer_is_hung_up_on() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()

    async with raw(flood) as receiver, protocol() as http:
        assert await http.deliver(message(), endpoint(receiver.url)) == Complete()
        await until(lambda: receiver.open == 0)
