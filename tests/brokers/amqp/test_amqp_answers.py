"""What a server of AMQP says about messages: confirms, returns, refusals, a closed channel."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pamqp import commands, header

from menzil.deliver.amqp import Amqp
from menzil.deliver.amqp import session as amqp_session
from menzil.model.message import Message
from menzil.model.outcome import Complete, Defer
from tests.brokers.amqp.peer import Line, amqp_endpoint, peer
from tests.brokers.stage import completed, failed, in_loop, message, speaking


def some(count: int) -> list[Message]:
    return [message(n) for n in range(count)]


@in_loop
async def test_confirms_come_one_by_one_in_any_order_and_for_several_at_once() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(10)
        for tag in (9, 2, 2):  # out of order, and twice
            line.ack(tag)
        line.ack(5, multiple=True)  # 1, 3, 4, 5
        line.ack(3, multiple=True)  # of those before nothing is left
        line.ack(10)
        line.ack(8, multiple=True)
        await line.messages(3)
        line.ack(4)  # of the batch before
        line.ack(0, multiple=True)  # all
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port)
        for first, count in ((1, 10), (11, 3)):
            answers = [completed(outcome) for outcome in await broker.deliver_many(some(count), endpoint)]
            assert [answer["delivery_tag"] for answer in answers] == list(range(first, first + count))
            assert all(answer["confirm_ms"] >= 0 for answer in answers)
        assert broker.kept == 1


@pytest.mark.parametrize("confirm", [commands.Basic.Ack(7, True), commands.Basic.Ack(4), commands.Basic.Ack(0)])
@in_loop
async def test_a_confirm_for_a_message_that_was_never_sent_settles_nothing(confirm: commands.Basic.Ack) -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(3)
        line.ack(1)
        line.say(confirm)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(3), amqp_endpoint(port))
        completed(found[0])
        assert [failed(outcome)[0] for outcome in found[1:]] == ["unknown"] * 2
        assert broker.kept == 0


@pytest.mark.parametrize(("unroutable", "kind"), [("retry", "endpoint"), ("dead_letter", "message")])
@in_loop
async def test_a_message_that_came_back_is_not_delivered_although_it_is_confirmed(unroutable: str, kind: str) -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        found = await line.messages(500)
        assert all(one.method.mandatory for one in found)
        line.ack(2, multiple=True)
        line.give_back(found[2], split=3)  # its body comes in pieces
        line.ack(500, multiple=True)
        (one,) = await line.messages(1)
        line.ack(one.tag)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port, unroutable=unroutable)
        found = await broker.deliver_many(some(500), endpoint)
        assert [isinstance(outcome, Complete) for outcome in found] == [True] * 2 + [False] + [True] * 497
        assert failed(found[2])[0] == kind
        assert "returned the message: 312 NO_ROUTE (exchange '', routing key 'orders')" in failed(found[2])[1]
        completed(await broker.deliver(message(), endpoint))
        assert broker.kept == 1


@in_loop
async def test_the_confirm_of_a_returned_message_does_not_settle_the_next_batch() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        line.give_back(await line.message())
        await line.messages(2)
        line.ack(1)  # late, for the one that came back
        line.nack(2)
        line.ack(3)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port)
        assert failed(await broker.deliver(message(), endpoint))[0] == "endpoint"
        first, second = await broker.deliver_many(some(2), endpoint)
        assert failed(first)[0] == "busy"
        assert completed(second)["delivery_tag"] == 3


@in_loop
async def test_a_message_that_came_back_and_was_never_sent_makes_everything_uncertain() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        found = await line.messages(3)
        found[1].properties.message_id = "another"
        line.give_back(found[1])
        line.ack(3, multiple=True)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(3), amqp_endpoint(port))
        assert {failed(outcome)[0] for outcome in found} == {"unknown"}


@in_loop
async def test_a_return_that_is_cut_short_makes_everything_uncertain() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(2)
        line.say(commands.Basic.Return(312, "NO_ROUTE", "", "orders"))
        line.ack(2, multiple=True)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(2), amqp_endpoint(port))
        assert {failed(outcome)[0] for outcome in found} == {"unknown"}


@in_loop
async def test_a_full_queue_refuses_exactly_its_messages() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(6)
        line.ack(2, multiple=True)
        line.nack(3)
        line.ack(4)
        line.nack(6, multiple=True)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(6), amqp_endpoint(port))
        kinds = ["ok" if isinstance(outcome, Complete) else failed(outcome)[0] for outcome in found]
        assert kinds == ["ok", "ok", "busy", "ok", "busy", "busy"]
        assert "basic.nack" in failed(found[2])[1]
        assert broker.kept == 1


@in_loop
async def test_one_of_500_closes_the_channel_and_goes_alone_next_time() -> None:
    """The server does not say which one it was: no message is blamed, and the next batch goes one by one."""
    guilty, seen = message("guilty"), []

    async def talk(line: Line) -> None:
        await line.greet()
        while True:
            one = await line.message()
            seen.append(one.body)
            if one.body == b'"guilty"':
                line.close_channel(404, "NOT_FOUND - no exchange 'x' in vhost '/'")
                await line.end()
            if len(seen) > 500:
                line.ack(one.tag)

    innocent = some(499)
    batch = [*innocent[:100], guilty, *innocent[100:]]
    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port)
        assert set(await broker.deliver_many(batch, endpoint)) == {Defer()}
        seen[:] = [b""] * 500
        found = await broker.deliver_many(batch, endpoint)
        assert all(isinstance(outcome, Complete) for outcome in found[:100])
        kind, reason = failed(found[100])
        assert (kind, "404 NOT_FOUND - no exchange" in reason) == ("endpoint", True)
        assert set(found[101:]) == {Defer()}
        assert len(seen) == 500 + 101  # the others were not written
        for outcome in await broker.deliver_many(innocent[100:], endpoint):
            completed(outcome)
        assert broker.kept == 1


@in_loop
async def test_after_a_good_batch_messages_go_together_again() -> None:
    async def first(line: Line) -> None:
        await line.greet()
        await line.messages(3)
        line.close_channel(403, "ACCESS_REFUSED - no")
        await line.end()

    async def second(line: Line) -> None:
        await line.greet()
        for tag in (1, 2, 3):
            await line.message()
            line.ack(tag)
        await line.messages(3)  # only when they come together
        line.ack(6, multiple=True)
        await line.end()

    async with peer(first, second) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port)
        assert set(await broker.deliver_many(some(3), endpoint)) == {Defer()}
        for _ in range(2):
            for outcome in await broker.deliver_many(some(3), endpoint):
                completed(outcome)


@in_loop
async def test_a_body_that_is_too_large_for_the_server_is_found_by_its_size() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(4)
        line.ack(1)
        said = "PRECONDITION_FAILED - message size 3000 is larger than configured max size 2000"
        line.close_channel(406, said)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        batch = [message(content=b"x" * size) for size in (5, 3000, 2000, 9000)]
        found = await broker.deliver_many(batch, amqp_endpoint(port))
        completed(found[0])
        assert [failed(found[place])[0] for place in (1, 3)] == ["message"] * 2
        assert found[2] == Defer()
        assert broker.kept == 0


@pytest.mark.parametrize(
    ("code", "kind"), [(320, "unknown"), (541, "unknown"), (501, "unknown"), (530, "unknown")], ids=str
)
@in_loop
async def test_a_closed_connection_leaves_messages_that_may_be_written(code: int, kind: str) -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(2)
        line.ack(1)
        line.close(code, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
        await line.expect(commands.Connection.CloseOk)

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(2), amqp_endpoint(port))
        completed(found[0])
        assert failed(found[1])[0] == kind
        assert str(code) in failed(found[1])[1]


@in_loop
async def test_nothing_is_published_while_the_server_blocks_publishers() -> None:
    blocked, go = asyncio.Event(), asyncio.Event()
    during: list[bytes] = []

    async def talk(line: Line) -> None:
        await line.greet()
        line.ack((await line.message()).tag)
        line.block("low on memory")
        blocked.set()
        reading = asyncio.create_task(line.message())
        await go.wait()
        during.extend([b"x"] if reading.done() else [])
        line.unblock()
        line.ack((await reading).tag)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port)
        completed(await broker.deliver(message(), endpoint))
        await blocked.wait()
        (session,) = broker._kept._idle
        assert isinstance(session, amqp_session.AmqpSession)
        while session._blocked is None:
            await asyncio.sleep(0.001)
        waiting = asyncio.create_task(broker.deliver(message(), endpoint))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done
        go.set()
        completed(await waiting)
        assert not during


@in_loop
async def test_a_server_that_stays_blocked_is_to_blame_and_nothing_is_uncertain() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        line.ack((await line.message()).tag)
        line.block("low on disk")
        await line.message()
        raise AssertionError("published while blocked")

    async with peer(talk) as port, speaking(Amqp) as broker:
        endpoint = amqp_endpoint(port, timeout_seconds=3)
        completed(await broker.deliver(message(), endpoint))
        (session,) = broker._kept._idle
        assert isinstance(session, amqp_session.AmqpSession)
        while session._blocked is None:
            await asyncio.sleep(0.001)
        kind, reason = failed(await broker.deliver(message(), endpoint))
        assert kind == "endpoint"
        assert "blocks publishers: low on disk" in reason
        assert broker.kept == 1  # it is still good, and a new one would not know


@in_loop
async def test_the_rest_of_a_batch_waits_when_the_server_blocks_in_the_middle() -> None:
    """Messages that were written are uncertain at the deadline, the others are not."""
    large = [message(content=b"x" * 200_000) for _ in range(4)]

    async def talk(line: Line) -> None:
        await line.greet()
        line.block("low on memory")
        await line.raw()
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(large, amqp_endpoint(port, timeout_seconds=0.7))
        kinds = [failed(outcome)[0] for outcome in found]
        assert kinds in (["endpoint"] * 4, ["unknown"] * 2 + ["endpoint"] * 2)


@pytest.mark.parametrize("channel", [0, 1, 2])
@pytest.mark.parametrize(
    "odd", [commands.Queue.DeclareOk("q", 1, 1), header.ContentHeader(), commands.Connection.OpenOk()]
)
@in_loop
async def test_frames_that_have_no_place_end_the_connection(odd: Any, channel: int) -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.messages(2)
        line.ack(1)
        line.say(odd, channel)
        line.ack(2)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        found = await broker.deliver_many(some(2), amqp_endpoint(port))
        completed(found[0])
        assert failed(found[1])[0] == "unknown"
