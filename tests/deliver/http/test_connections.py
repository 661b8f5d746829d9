"""Connections are kept when they are clean, and dropped when they are not."""

from __future__ import annotations

import asyncio

import pytest

from menzil.deliver.wire import pool
from menzil.model.outcome import Complete
from tests.deliver.http.receivers import OK, Reader, Writer, answering, polite, raw, read_request, reset
from tests.deliver.http.stage import completed, deliver, endpoint, failed, in_loop, message, protocol, until

LENGTH = b"content-length: 2\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "kept", "body"),
    [
        (OK, True, "ok"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True, ""),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", True, ""),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\no\r\n1;x=y\r\nk\r\n0\r\nx-t: 1\r\n\r\n",
            True,
            "ok",
        ),
        (b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 103 Early\r\n\r\n" + OK, True, "ok"),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n" + LENGTH + b"\r\nok", True, "ok"),
        (b"HTTP/1.0 200 OK\r\n" + LENGTH + b"\r\nok", False, "ok"),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n" + LENGTH + b"\r\nok", False, "ok"),
        (OK + b"HTTP/1.1 200 OK\r\n", False, "ok"),
        (OK + b"x", False, "ok"),
    ],
)
@in_loop
async def test_a_connection_is_used_again_only_after_a_clean_answer(answer: bytes, kept: bool, body: str) -> None:
    async with raw(answering(answer)) as receiver, protocol() as http:
        there = endpoint(receiver.url, capture_response=True)
        for _ in range(3):
            told = completed(await http.deliver(message(), there))
            assert told.response is not None
            assert told.response["body"] == body
        assert receiver.connections == (1 if kept else 3)
        assert http.connections() == (0, 1 if kept else 0)


@in_loop
async def test_a_body_may_end_with_the_connection() -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nok")

    async with raw(handle) as receiver:
        told = completed(await deliver(receiver.url, capture_response=True))
        assert told.response is not None
        assert told.response["body"] == "ok"


@in_loop
async def test_an_answer_may_come_byte_by_byte() -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        for byte in b"HTTP/1.1 100 Continue\r\n\r\n" + OK:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0)

    async with raw(handle) as receiver:
        assert await deliver(receiver.url) == Complete()


@in_loop
async def test_what_comes_unasked_closes_a_kept_connection() -> None:
    kept = asyncio.Event()

    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(OK)
        await kept.wait()
        writer.write(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")
        await read_request(reader)

    async with raw(handle) as receiver, protocol() as http:
        there = endpoint(receiver.url)
        assert await http.deliver(message(), there) == Complete()
        assert http.connections() == (0, 1)
        kept.set()
        await until(lambda: http.connections() == (0, 0))
        assert await http.deliver(message(), there) == Complete()


@pytest.mark.parametrize("rude", [False, True])
@in_loop
async def test_a_kept_connection_that_died_is_replaced_within_the_same_attempt(rude: bool) -> None:
    requests: list[bytes] = []

    async def handle(reader: Reader, writer: Writer) -> None:
        requests.append(await read_request(reader))
        writer.write(OK)
        await read_request(reader)  # takes the next one in, and hangs up without a word
        if rude:
            reset(writer)

    async with raw(handle) as receiver, protocol() as http:
        there = endpoint(receiver.url)
        for _ in range(3):
            assert await http.deliver(message(), there) == Complete()
        assert receiver.connections == 3
        assert len(requests) == 3


@in_loop
async def test_a_new_connection_that_dies_is_not_replaced() -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)

    async with raw(handle) as receiver, protocol() as http:
        assert failed(await http.deliver(message(), endpoint(receiver.url))).retry is True
        assert receiver.connections == 1


@pytest.mark.parametrize("hang", [False, True])
@in_loop
async def test_a_kept_connection_that_began_to_answer_is_not_replaced(hang: bool) -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(OK)
        await read_request(reader)
        writer.write(b"HTTP/1.1 2")
        if hang:
            await reader.read()

    async with raw(handle) as receiver, protocol() as http:
        there = endpoint(receiver.url, timeout_seconds=3 if hang else 60)  # the first answer comes within it
        assert await http.deliver(message(), there) == Complete()
        assert "reading the response" in failed(await http.deliver(message(), there)).reason
        assert receiver.connections == 1


@in_loop
async def test_many_messages_at_once_share_few_connections() -> None:
    async with polite() as receiver, protocol() as http:
        there = endpoint(receiver.url)
        for _ in range(5):
            outcomes = await asyncio.gather(*[http.deliver(message(), there) for _ in range(40)])
            assert set(outcomes) == {Complete()}
        assert http.connections()[1] <= 40
        ids = [seen.headers["webhook-id"] for seen in receiver.seen]
        assert len(ids) == len(set(ids)) == 200


@in_loop
async def test_answers_do_not_get_mixed_up() -> None:
    async def echo(reader: Reader, writer: Writer) -> None:
        while True:
            request = await read_request(reader)
            body = request.partition(b"\r\n\r\n")[2]
            await asyncio.sleep(len(body) % 7 / 1000)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    async with raw(echo) as receiver, protocol() as http:
        there = endpoint(receiver.url, capture_response=True)

        async def one(number: int) -> None:
            text = f'"{number}{"x" * (number % 50)}"'
            told = completed(await http.deliver(message(text.strip('"')), there))
            assert told.response is not None
            assert told.response["body"] == text

        await asyncio.gather(*[one(number) for number in range(300)])


@in_loop
async def test_kept_connections_are_bounded_and_the_oldest_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_PER_ROUTE", 3)
    monkeypatch.setattr(pool, "IDLE_TOTAL", 5)
    gate = asyncio.Event()

    async def handle(reader: Reader, writer: Writer) -> None:
        while True:
            await read_request(reader)
            await gate.wait()
            writer.write(OK)

    async with raw(handle) as one, raw(handle) as two, protocol() as http:
        many = [http.deliver(message(), endpoint(url)) for url in [one.url, two.url] for _ in range(6)]
        running = asyncio.gather(*many)
        await until(lambda: one.open == two.open == 6)
        gate.set()
        assert set(await running) == {Complete()}
        await until(lambda: one.open + two.open == 5)
        assert http.connections() == (0, 5)
        assert one.open <= 3 >= two.open


@in_loop
async def test_kept_connections_are_closed_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.1)
    monkeypatch.setattr(pool, "_SLOW_TICK", 0.05)
    async with raw(answering(OK)) as receiver, protocol() as http:
        assert await http.deliver(message(), endpoint(receiver.url)) == Complete()
        assert http.connections() == (0, 1)
        await until(lambda: http.connections() == (0, 0) and receiver.open == 0)


@in_loop
async def test_a_cancelled_delivery_drops_its_connection() -> None:
    started = asyncio.Event()

    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        started.set()
        await reader.read()  # until the other side hangs up

    async with raw(handle) as receiver, protocol() as http:
        running = asyncio.create_task(http.deliver(message(), endpoint(receiver.url)))
        await started.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert http.connections() == (0, 0)
        await until(lambda: receiver.open == 0)


@in_loop
async def test_close_ends_what_is_in_flight_with_a_retry() -> None:
    started = asyncio.Event()

    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        started.set()
        await reader.read()

    async with raw(handle) as receiver, protocol() as http:
        running = asyncio.create_task(http.deliver(message(), endpoint(receiver.url)))
        await started.wait()
        await http.close()
        outcome = failed(await running)
        assert (outcome.reason, outcome.retry) == ("The worker is stopping", True)
        await until(lambda: receiver.open == 0)


@in_loop
async def test_an_early_answer_to_a_large_body_is_taken() -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async with raw(handle) as receiver, protocol() as http:
        outcome = failed(await http.deliver(message(content=bytes(16_000_000)), endpoint(receiver.url)))
        assert outcome.reason.startswith("HTTP 413 ")
        assert outcome.retry is False
        assert http.connections() == (0, 0)


@in_loop
async def test_an_address_of_version_6_is_reached() -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        request = await read_request(reader)
        assert f"host: [::1]:{port}\r\n".encode() in request
        writer.write(OK)
        writer.close()

    try:
        server = await asyncio.start_server(handle, "::1", 0)
    except OSError:
        pytest.skip("this machine has no addresses of version 6")
    port = server.sockets[0].getsockname()[1]
    async with server:
        assert await deliver(f"http://[::1]:{port}/") == Complete()


@in_loop
async def test_receivers_that_hang_do_not_slow_down_the_others() -> None:
    async def hang(reader: Reader, writer: Writer) -> None:
        await reader.read()

    async with raw(hang) as slow, polite() as receiver, protocol() as http:
        stuck, fine = endpoint(slow.url, timeout_seconds=120), endpoint(receiver.url)
        hanging = [asyncio.create_task(http.deliver(message(), stuck)) for _ in range(100)]
        await until(lambda: slow.open == 100)
        outcomes = await asyncio.gather(*[http.deliver(message(), fine) for _ in range(100)])
        assert set(outcomes) == {Complete()}
        assert not any(task.done() for task in hanging)
        for task in hanging:
            task.cancel()
        await until(lambda: slow.open == 0)


@in_loop
async def test_receivers_that_hang_cost_one_deadline_together() -> None:
    async def hang(reader: Reader, writer: Writer) -> None:
        await reader.read()

    async with raw(hang) as slow, protocol() as http:
        stuck = endpoint(slow.url, timeout_seconds=2)
        started = asyncio.get_running_loop().time()
        for outcome in await asyncio.gather(*[http.deliver(message(), stuck) for _ in range(100)]):
            assert failed(outcome).reason == "No complete answer within 2 s (waiting for the response)"
        assert asyncio.get_running_loop().time() - started < 100  # one after the other they would take 200 s
        await until(lambda: slow.open == 0)
