"""Receivers that misbehave, numbered, each with what has to become of the message."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from tests.deliver.http.receivers import Handle, Reader, Writer, answering, read_request, reset

SECONDS = 0.5  # the deadline of the endpoint
_numbers = count(1)


@dataclass(frozen=True)
class Bad:
    """One kind of receiver. `reason` is a regular expression; None means that the message is delivered."""

    number: int
    name: str
    handle: Handle
    reason: str | None
    retry: bool | float = True
    status: int | None = None
    disable: bool = False

    def __str__(self) -> str:
        return f"{self.number:02}-{self.name.replace(' ', '-')}"


def _bad(
    name: str,
    handle: Handle | bytes,
    reason: str | None,
    retry: bool | float = True,
    status: int | None = None,
    disable: bool = False,
) -> Bad:
    handle = answering(handle) if isinstance(handle, bytes) else handle
    return Bad(next(_numbers), name, handle, reason, retry, status, disable)


async def _forever() -> None:
    await asyncio.Event().wait()


async def _closes(reader: Reader, writer: Writer) -> None:
    return


async def _closes_after_reading(reader: Reader, writer: Writer) -> None:
    await read_request(reader)


async def _resets(reader: Reader, writer: Writer) -> None:
    await read_request(reader)
    reset(writer)


async def _never_reads(reader: Reader, writer: Writer) -> None:
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    await _forever()


def _says(*pieces: bytes, then: Callable[[Writer], None] | None = None, hang: bool = False) -> Handle:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if then:
            then(writer)
        if hang:
            await _forever()

    return handle


def _drips(first: bytes, piece: bytes) -> Handle:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(first)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)

    return handle


def _floods(first: bytes, piece: bytes) -> Handle:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(first)
        while True:
            writer.write(piece)
            await writer.drain()

    return handle


def _status(line: str, headers: str = "", body: str = "no") -> bytes:
    return f"HTTP/1.1 {line}\r\ncontent-length: {len(body)}\r\n{headers}\r\n{body}".encode()


_OK = b"HTTP/1.1 200 OK\r\n"
_BOMB = gzip.compress(b"\0" * 10_000_000)
_BOMBED = _OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(_BOMB) + _BOMB
_LATE = rf"No complete answer within {SECONDS} s"
_NOT_HTTP = r"The answer of 127\.0\.0\.1:\d+ is not HTTP: "

BAD = [
    _bad("accepts and closes", _closes, r"Connection (closed|reset) by 127\.0\.0\.1:\d+ \("),
    _bad("reads and closes", _closes_after_reading, r"Connection closed by .* \(waiting for the response\)"),
    _bad("resets", _resets, r"Connection reset by .* \(waiting for the response\)"),
    _bad("never reads", _never_reads, rf"{_LATE} \((sending the request|waiting for the response)\)"),
    _bad("hangs before the headers", _says(hang=True), rf"{_LATE} \(waiting for the response\)"),
    _bad("hangs within the headers", _says(_OK, hang=True), rf"{_LATE} \(reading the response\)"),
    _bad("hangs after the headers", _says(_OK + b"content-length: 9\r\n\r\n", hang=True),
         rf"{_LATE} \(reading the response\)", status=200),
    _bad("drips headers", _drips(_OK, b"x-a: b\r\n"), rf"{_LATE} \(reading the response\)"),
    _bad("drips one header", _drips(_OK + b"x-a: ", b"b"), rf"{_LATE} \(reading the response\)"),
    _bad("drips a body", _drips(_OK + b"content-length: 9999\r\n\r\n", b"b"), _LATE, status=200),
    _bad("drips chunks", _drips(_OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nb\r\n"), _LATE, status=200),
    _bad("huge headers", _floods(_OK, b"x-a: " + b"b" * 1000 + b"\r\n"),
         _NOT_HTTP + "its headers are longer than 65536 bytes"),
    _bad("one huge header", _floods(_OK + b"x-a: ", b"b" * 1000), _NOT_HTTP + "its headers are longer"),
    _bad("endless body of a 200", _floods(_OK + b"\r\n", b"b" * 10_000), None),
    _bad("endless body of a 503", _floods(b"HTTP/1.1 503 No\r\n\r\n", b"b" * 10_000),
         r"HTTP 503 Service Unavailable: b{199}…$", status=503),
    _bad("endless chunks", _floods(_OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nb\r\n" * 99), None),
    _bad("endless trailers", _floods(_OK + b"transfer-encoding: chunked\r\n\r\n0\r\n", b"x-a: b\r\n" * 99), None),
    _bad("gzip bomb", _BOMBED, None),
    _bad("gzip bomb with a 500", _BOMBED.replace(b"200 OK", b"500 No"),
         r"HTTP 500 Internal Server Error: \(9\d+ bytes, encoded as gzip\)$", status=500),
    _bad("garbage", b"\x16\x03\x01\x00\xff" * 20, _NOT_HTTP + "it does not begin with HTTP/1"),
    _bad("another protocol", b"SSH-2.0-OpenSSH_9.6\r\n", _NOT_HTTP),
    _bad("status line with letters", b"HTTP/1.1 abc OK\r\n\r\n", _NOT_HTTP + "Invalid status code"),
    _bad("status of four digits", b"HTTP/1.1 2000 OK\r\n\r\n", _NOT_HTTP + "Invalid response status"),
    _bad("status out of range", _status("999 Odd"), _NOT_HTTP + "its status is 999"),
    _bad("HTTP/0.9", _says(b"<html>thank you</html>"), _NOT_HTTP + "it does not begin with HTTP/1"),
    _bad("HTTP/2", b"HTTP/2.0 200 OK\r\n\r\n", _NOT_HTTP + "it does not begin with HTTP/1"),
    _bad("bad chunk size", _OK + b"transfer-encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n", _NOT_HTTP, status=200),
    _bad("length and chunks", _OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", _NOT_HTTP),
    _bad("two lengths", _OK + b"content-length: 5\r\ncontent-length: 6\r\n\r\nhello", _NOT_HTTP),
    _bad("negative length", _OK + b"content-length: -5\r\n\r\nhello", _NOT_HTTP),
    _bad("space before the colon", _OK + b"content-length : 2\r\n\r\nok", _NOT_HTTP),
    _bad("body shorter than its length", _says(_OK + b"content-length: 99\r\n\r\nhello"),
         r"Connection closed by .* \(reading the response\)", status=200),
    _bad("chunks without an end", _says(_OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"),
         r"Connection closed by .* \(reading the response\)", status=200),
    _bad("body longer than its length", _OK + b"content-length: 2\r\n\r\nok and more", None),
    _bad("two answers", _OK + b"content-length: 2\r\n\r\nok" + _status("500 No"), None),
    _bad("flood of 100s", _floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50), _NOT_HTTP + "its headers are longer"),
    _bad("drip of 100s", _drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), _LATE),
    _bad("switches protocols", b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
         _NOT_HTTP + "it switches protocols"),
    _bad("switches protocols silently", b"HTTP/1.1 101 Switching\r\n\r\n", _NOT_HTTP + "it switches protocols"),
    _bad("301", _status("301 Moved", "location: /other\r\n"), "HTTP 301 Moved Permanently: no$", False, 301),
    _bad("302 to the metadata service", _status("302 Found", "location: http://169.254.169.254/latest\r\n"),
         "HTTP 302 Found", False, 302),
    _bad("304", b"HTTP/1.1 304 Not Modified\r\n\r\n", "HTTP 304 Not Modified$", False, 304),
    _bad("307", _status("307 Temporary", "location: /other\r\n"), "HTTP 307", False, 307),
    _bad("400", _status("400 Bad"), "HTTP 400 Bad Request: no$", False, 400),
    _bad("401", _status("401 No"), "HTTP 401 Unauthorized", False, 401),
    _bad("404", _status("404 No"), "HTTP 404 Not Found", False, 404),
    _bad("407", _status("407 No"), "HTTP 407 Proxy Authentication Required", False, 407),
    _bad("408", _status("408 No"), "HTTP 408 Request Timeout", True, 408),
    _bad("409", _status("409 No"), "HTTP 409 Conflict", True, 409),
    _bad("410", _status("410 Gone"), "HTTP 410 Gone", False, 410, disable=True),
    _bad("413", _status("413 No"), "HTTP 413", False, 413),
    _bad("418", _status("418 Teapot"), "HTTP 418", False, 418),
    _bad("425", _status("425 No"), "HTTP 425 Too Early", True, 425),
    _bad("429", _status("429 No"), "HTTP 429 Too Many Requests", True, 429),
    _bad("429 with seconds", _status("429 No", "Retry-After: 7\r\n"), "HTTP 429", 7.0, 429),
    _bad("429 with a date", _status("429 No", "date: Mon, 16 Nov 2026 01:00:00 GMT\r\nRETRY-AFTER: "
         "Mon, 16 Nov 2026 01:01:30 GMT\r\n"), "HTTP 429", 90.0, 429),
    _bad("429 with garbage", _status("429 No", "retry-after: soon\r\n"), "HTTP 429", True, 429),
    _bad("429 with a past date", _status("429 No", "retry-after: Mon, 16 Nov 2020 01:00:00 GMT\r\n"),
         "HTTP 429", True, 429),
    _bad("429 with no wait", _status("429 No", "retry-after: 0\r\n"), "HTTP 429", True, 429),
    _bad("429 with a negative wait", _status("429 No", "retry-after: -9\r\n"), "HTTP 429", True, 429),
    _bad("503 with a year", _status("503 No", "retry-after: 31536000\r\n"), "HTTP 503", 86400.0, 503),
    _bad("500 with seconds", _status("500 No", "retry-after: 7\r\n"), "HTTP 500 Internal Server Error", True, 500),
    _bad("502", _status("502 No"), "HTTP 502 Bad Gateway", True, 502),
    _bad("599", _status("599 Odd"), "HTTP 599: no$", True, 599),
    _bad("answers 200 and resets", _says(_OK + b"content-length: 2\r\n\r\nok", then=reset), None),
    _bad("resets within the body", _says(_OK + b"content-length: 9\r\n\r\nok", hang=False, then=reset),
         r"Connection (reset|closed) by", status=None),
    _bad("control characters", _status("500 No", body="\x1b[31mred\x00\r\nend"),
         "HTTP 500 Internal Server Error: \ufffd\\[31mred\ufffd\ufffd end$", status=500),
]  # fmt: skip
