"""One connection, and the one request at a time that it carries.

What runs per request is kept small on purpose: headers and body are collected by methods of dict and list, which the
parser, being C, calls without entering Python.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import httptools

from menzil.deliver.wire.answer import Answer
from menzil.deliver.wire.errors import StaleError, WireError, broken, late

if TYPE_CHECKING:
    from menzil.deliver.wire.pool import Pool
    from menzil.deliver.wire.route import Route

HEAD_LIMIT = 65_536  # bytes of status line and headers, informational answers before it included
BODY_LIMIT = 65_536  # bytes of the body; the status is known by then
_APART = 32_768  # a body larger than this is not copied next to its headers


class Connection(asyncio.Protocol):
    """Made by `open_connection`, used through `Client`."""

    __slots__ = (
        "_answer", "_chunks", "_headers", "_in_body", "_keep", "_limit", "_parser", "_pool", "_received", "_seconds",
        "_transport", "_waiter", "address", "deadline", "idle_since", "on_body", "on_header", "peer", "route", "served",
    )  # fmt: skip

    def __init__(self, pool: Pool, route: Route, address: str, peer: str) -> None:
        self._pool = pool
        self.route = route
        self.address = address
        self.peer = peer  # for people
        self.served = 0
        self.deadline = 0.0
        self.idle_since = 0.0
        self._seconds = 0.0
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._headers: dict[bytes, bytes] = {}
        self._chunks: list[bytes] = []
        self.on_header = self._headers.__setitem__
        self.on_body = self._chunks.append
        self._parser = httptools.HttpResponseParser(self)
        self._begin()

    def _begin(self) -> None:
        self._headers.clear()
        self._chunks.clear()
        self._received = 0
        self._limit = HEAD_LIMIT
        self._in_body = False
        self._keep = False
        self._answer: Answer | None = None

    # What the client does.

    def send(self, head: bytes, body: bytes, deadline: float, seconds: float) -> asyncio.Future[Answer]:
        """Send a request; its answer, or a WireError, comes by the deadline, which is `seconds` from its beginning."""
        assert self._waiter is None
        transport = self._transport
        assert transport is not None
        self._begin()
        self._waiter = waiter = self._pool.loop.create_future()
        self.deadline = deadline
        self._seconds = seconds
        self._pool.busy(self)
        if len(body) <= _APART:
            transport.write(head + body)
        else:
            transport.write(head)
            transport.write(body)
        return waiter

    def usable(self) -> bool:
        """Whether the other side has not hung up, as far as we know."""
        transport = self._transport
        return transport is not None and not transport.is_closing()

    def expire(self) -> None:
        """Give up on the request: its time is over."""
        self._fail(late(self._seconds, self._doing(), self._partial()))
        self.abort()

    def abort(self) -> None:
        """Drop the connection at once, also in the middle of a request."""
        transport, self._transport = self._transport, None
        self._pool.forget(self)
        if transport is not None:
            transport.abort()

    def stop(self) -> None:
        """Drop the connection because the client closes."""
        self._fail(WireError("The worker is stopping"))
        self.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:  # no request is open: these bytes could be taken for the answer to the next one
            self.abort()
            return
        if not self._received and not b"HTTP/1.".startswith(data[:7]):
            self._garbage("it does not begin with HTTP/1")
            return
        self._received += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._answer is None:
                switches = self._parser.get_status_code() == 101
                self._garbage("it switches protocols" if switches else str(error))
                return
            self._keep = False  # something follows the answer, and it is no answer
        if self._answer is not None:
            self._settle(self._answer)
        elif self._received > self._limit:
            if self._in_body:
                self._settle(self._made(whole=False))  # enough is known
            else:
                self._garbage(f"its headers are longer than {HEAD_LIMIT} bytes")

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._pool.forget(self)
        if self._waiter is None:
            return
        if self._in_body and exc is None and self._ends_with_the_connection():
            self._settle(self._made(whole=True))
            return
        sentence = broken(exc, self.peer, self._doing())
        if self.served and not self._received:
            self._fail(StaleError(sentence))
        else:
            self._fail(WireError(sentence, self._partial()))

    # What the parser calls, besides dict.__setitem__ and list.append.

    def on_message_begin(self) -> None:
        if self._answer is not None:
            self._keep = False  # a second answer to one request

    def on_headers_complete(self) -> None:
        if self._answer is None and self._parser.get_status_code() >= 200:
            self._in_body = True
            self._limit = self._received + BODY_LIMIT

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._answer is not None:
            return
        if status >= 200:
            self._keep = self._parser.should_keep_alive()
            self._answer = self._made(whole=True)
        elif status == 101:
            raise ValueError  # reported by data_received
        else:
            self._headers.clear()

    # How a request ends.

    def _made(self, *, whole: bool) -> Answer:
        chunks = self._chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        return Answer(self._parser.get_status_code(), self._headers.copy(), body[:BODY_LIMIT], whole)

    def _partial(self) -> Answer | None:
        return self._made(whole=False) if self._in_body else None

    def _settle(self, answer: Answer) -> None:
        if answer.status > 599:
            self._garbage(f"its status is {answer.status}")
            return
        waiter, self._waiter = self._waiter, None
        self.served += 1
        transport = self._transport
        if self._keep and transport is not None and not transport.get_write_buffer_size():
            self._pool.keep(self)
        else:
            self.abort()
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    def _fail(self, error: WireError) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    def _garbage(self, what: str) -> None:
        self._fail(WireError(f"The answer of {self.peer} is not HTTP: {what}", self._partial()))
        self.abort()

    def _doing(self) -> str:
        if self._received:
            return "reading the response"
        if self._transport is not None and self._transport.get_write_buffer_size():
            return "sending the request"
        return "waiting for the response"

    def _ends_with_the_connection(self) -> bool:
        answer = self._made(whole=True)
        coding = answer.header(b"transfer-encoding")
        if coding is not None:
            return not coding.lower().endswith("chunked")
        return answer.header(b"content-length") is None
