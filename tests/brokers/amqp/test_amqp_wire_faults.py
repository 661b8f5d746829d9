"""Connections of AMQP that break at the worst moment, and what is said too late."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest
from pamqp import commands, frame

from menzil.deliver.amqp import Amqp
from menzil.model.message import Message
from menzil.model.outcome import Complete
from tests.brokers.amqp.peer import Line, amqp_endpoint, peer
from tests.brokers.stage import completed, failed, in_loop, message, speaking


def some(count: int) -> list[Message]:
    return [message(n) for n in range(count)]


def abort(line: Line) -> None:
    """End with a reset, as a process that dies does."""
    sock = line.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    line.writer.transport.abort()


@in_loop
async def test_a_reset_in_the_middle_of_a_confirm_settles_only_whole_confirms() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(10)
        line.ack(1)
        line.ack(2)
        line.writer.write(frame.marshal(commands.Basic.Ack(10, True), 1)[:-3])
        await line.writer.drain()
        abort(line)

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(10), amqp_endpoint(port))
        # A reset may overtake what was sent before it: then nothing is known of these two either.
        assert {isinstance(outcome, Complete) for outcome in found[:2]} in ({True}, {False})
        assert {failed(outcome)[0] for outcome in found[2:]} == {"unknown"}
        assert broker.kept == 0


@in_loop
async def test_a_connection_that_is_closed_in_the_middle_of_a_frame_settles_only_whole_confirms() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(10)
        line.ack(2, multiple=True)
        line.writer.write(frame.marshal(commands.Basic.Ack(10, True), 1)[:-1])
        await line.writer.drain()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(10), amqp_endpoint(port))
        assert [isinstance(outcome, Complete) for outcome in found] == [True] * 2 + [False] * 8
        assert {failed(outcome)[0] for outcome in found[2:]} == {"unknown"}


@in_loop
async def test_half_a_frame_and_silence_end_at_the_deadline() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(2)
        line.writer.write(frame.marshal(commands.Basic.Ack(2, True), 1)[:9])
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(2), amqp_endpoint(port, timeout_seconds=0.4))
        assert {failed(outcome)[0] for outcome in found} == {"unknown"}
        assert "No acknowledgement from 127.0.0.1" in failed(found[0])[1]
        assert broker.kept == 0


@in_loop
async def test_a_server_that_swallows_everything_ends_at_the_deadline_with_a_reset() -> None:
    ended: list[type[BaseException] | None] = []

    async def talk(line: Line) -> None:
        await line.greet()
        try:
            await line.end()
            ended.append(None)
        except ConnectionResetError:
            ended.append(ConnectionResetError)

    async with peer(talk) as port, speaking(Amqp) as broker:
        assert failed(await broker.deliver(message(), amqp_endpoint(port, timeout_seconds=0.3)))[0] == "unknown"
        async with asyncio.timeout(60):
            while not ended:
                await asyncio.sleep(0.01)
        # What the kernel has not sent yet must not arrive after a retry.
        assert ended == [ConnectionResetError]


@in_loop
async def test_a_confirm_after_the_deadline_settles_nothing() -> None:
    """The first connection confirms too late, the second one not at all, with tags of the first."""
    late = asyncio.Event()

    async def first(line: Line) -> None:
        await line.greet()
        await line.message()
        await late.wait()
        line.ack(1)
        await line.end()

    async def second(line: Line) -> None:
        await line.greet()
        await line.message()
        late.set()
        await line.end()

    async with peer(first, second) as port, speaking(Amqp) as broker:
        endpoint, one = amqp_endpoint(port, timeout_seconds=0.3), message()
        for _ in range(2):
            assert failed(await broker.deliver(one, endpoint))[0] == "unknown"


@in_loop
async def test_a_confirm_for_an_earlier_batch_of_the_connection_settles_nothing() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(2)
        line.ack(2, multiple=True)
        await line.messages(2)
        line.ack(2, multiple=True)
        line.ack(1)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port, timeout_seconds=0.4)
        for outcome in await broker.deliver_many(some(2), endpoint):
            completed(outcome)
        found = await broker.deliver_many(some(2), endpoint)
        assert {failed(outcome)[0] for outcome in found} == {"unknown"}


@in_loop
async def test_every_attempt_has_the_same_id() -> None:
    seen: list[str | None] = []

    async def talk(line: Line) -> None:
        await line.greet()
        seen.append((await line.message()).properties.message_id)
        if len(seen) == 3:
            line.ack(1)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint, one = amqp_endpoint(port, timeout_seconds=0.2), message()
        for _ in range(3):
            outcome = await broker.deliver(one, endpoint)
        completed(outcome)
        assert seen == [one.wire_id] * 3


@in_loop
async def test_large_bodies_are_cut_into_frames_that_the_server_takes() -> None:
    sizes = [0, 1, 4088, 4089, 20_000]

    async def talk(line: Line) -> None:
        await line.greet(frame_max=4096)
        assert line.tuned is not None
        assert line.tuned.frame_max == 4096
        for size in sizes:
            one = await line.message()
            assert one.body == b"x" * size
            assert max(one.frames) <= 4096
            assert len(one.frames) == 2 + -(-size // 4088)
            line.ack(one.tag)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        batch = [message(content=b"x" * size) for size in sizes]
        for outcome in await broker.deliver_many(batch, amqp_endpoint(port)):
            completed(outcome)


@in_loop
async def test_what_does_not_fit_into_a_frame_or_a_field_harms_no_other_message() -> None:
    async def talk(line: Line) -> None:
        await line.greet(frame_max=4096)
        await line.messages(2)
        line.ack(2, multiple=True)
        await line.end()

    batch = [
        message(1),
        message(2, headers={"x-long": "x" * 4000}),
        message(3, metadata={"event_type": "ü" * 128}),
        message(4, headers={"content-type": "x" * 256}),
        message(5, ordering_key="\ud800"),
        message(6, ordering_key="ключ ключ"),
    ]
    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(batch, amqp_endpoint(port))
        completed(found[0])
        completed(found[5])
        assert [failed(outcome)[0] for outcome in found[1:5]] == ["message"] * 4
        assert "type of the message has 256 bytes" in failed(found[2])[1]


@in_loop
async def test_heartbeats_go_both_ways_and_a_dead_server_is_noticed() -> None:
    async def talk(line: Line) -> None:
        await line.greet(heartbeat=1)
        assert line.tuned is not None
        assert line.tuned.heartbeat == 1
        await line.message()
        await line.raw()  # counts heartbeats until the client gives up
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        outcome = await broker.deliver(message(), amqp_endpoint(port, timeout_seconds=30))
        kind, reason = failed(outcome)
        assert kind == "unknown"
        assert "No sign of life from" in reason


@in_loop
async def test_a_server_whose_heartbeats_come_is_waited_for() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.message()
        reading = asyncio.create_task(line.raw())
        while line.heartbeats < 6:  # three seconds
            line.writer.write(b"\x08\x00\x00\x00\x00\x00\x00\xce")
            await asyncio.sleep(0.1)
        line.ack(1)
        await reading

    async with peer(talk) as port, speaking(Amqp) as broker:
        completed(await broker.deliver(message(), amqp_endpoint(port, timeout_seconds=30, heartbeat_seconds=1)))


@pytest.mark.parametrize(
    "noise",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
        b"\x01\x00\x00\xff\xff\xff\xff",
        b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0a\x00",
        b"\x01\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0a\xce",
        b"\x09\x00\x00\x00\x00\x00\x04\x00\x0a\x00\x0a\xce",
        b"\x01\x00\x00\x00\x00\x00\x00\xce",
    ],
)
@in_loop
async def test_a_server_that_speaks_something_else_is_no_broker(noise: bytes) -> None:
    async def talk(line: Line) -> None:
        line.writer.write(noise)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        kind, reason = failed(await broker.deliver(message(), amqp_endpoint(port, timeout_seconds=2)))
        assert kind == "endpoint"
        assert f"127.0.0.1:{port}" in reason
