"""Through a proxy, when the endpoint names one and never otherwise."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop

from menzil.deliver.http import Http
from menzil.deliver.protocol import Surroundings
from menzil.model.outcome import Complete
from tests.deliver.http.conftest import Authority
from tests.deliver.http.receivers import Handle, Reader, Writer, polite, raw, read_request
from tests.deliver.http.stage import deliver, endpoint, failed, in_loop, message, protocol


@dataclass
class Via:
    """A proxy at work."""

    url: str = ""
    heads: list[bytes] = field(default_factory=list)


def _serve(via: Via) -> Handle:
    async def handle(reader: Reader, writer: Writer) -> None:
        request = await read_request(reader)
        via.heads.append(request.partition(b"\r\n\r\n")[0])
        method, place, _ = request.split(b"\r\n")[0].split(b" ")
        host, _, port = place.removeprefix(b"http://").partition(b"/")[0].decode().rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\nx: y\r\n\r\n")
        else:
            path = b"/" + place.removeprefix(b"http://").partition(b"/")[2]
            back.write(request.replace(place, path, 1))
        try:
            await asyncio.gather(_pump(reader, back), _pump(there, writer))
        finally:
            back.close()

    return handle


async def _pump(source: Reader, sink: Writer) -> None:
    with suppress(ConnectionError):
        while data := await source.read(65536):
            sink.write(data)
            await sink.drain()
    sink.close()


@asynccontextmanager
async def proxy(tls: ssl.SSLContext | None = None) -> AsyncIterator[Via]:
    via = Via()
    async with raw(_serve(via), tls) as running:
        via.url = running.url.removesuffix("/hook")
        yield via


@in_loop
async def test_plain_http_is_passed_on_with_the_whole_url_and_the_proxys_credentials() -> None:
    async with polite() as receiver, proxy() as via:
        through = {"url": via.url, "username": "me", "password": "pw"}
        assert await deliver(receiver.url + "/hook?a=1", proxy=through) == Complete()
        line, *headers = via.heads[0].split(b"\r\n")
        assert line == f"POST {receiver.url}/hook?a=1 HTTP/1.1".encode()
        assert b"proxy-authorization: Basic " + base64.b64encode(b"me:pw") in headers
        assert receiver.last.path == "/hook?a=1"


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_https_goes_through_a_tunnel_that_is_kept(authority: Authority, loop: Any) -> None:
    async def main() -> None:
        async with polite(tls=authority.server("127.0.0.1")) as receiver, proxy() as via, protocol() as http:
            through = {"url": via.url, "username": "me", "password": "pw"}
            there = endpoint(receiver.url + "/hook", proxy=through, tls={"ca": authority.pem})
            for _ in range(3):
                assert await http.deliver(message(), there) == Complete()
            place = receiver.url.removeprefix("https://").encode()
            credentials = base64.b64encode(b"me:pw")
            assert via.heads == [
                b"CONNECT %b HTTP/1.1\r\nhost: %b\r\nproxy-authorization: Basic %b" % (place, place, credentials)
            ]
            assert "proxy-authorization" not in receiver.last.headers
            wrong = endpoint(receiver.url, proxy=through)
            assert "certificate" in failed(await http.deliver(message(), wrong)).reason

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_proxy_may_be_reached_by_tls_itself(
    authority: Authority, loop: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text(authority.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(bundle))  # the system's trust store, which judges proxies

    async def main() -> None:
        context = authority.server("127.0.0.1")
        async with polite(tls=context) as secure, polite() as plain, proxy(context) as via, protocol() as http:
            for url in (secure.url, plain.url):
                assert await http.deliver(message(), endpoint(url, proxy={"url": via.url})) == Complete()
            assert [head.split(b" ")[0] for head in via.heads] == [b"CONNECT", b"POST"]

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "refused the connection: HTTP 407"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "refused the connection: HTTP 502"),
        (b"hello\r\n\r\n", "is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n\r\nand more", "said more than it was asked"),
        (b"x" * 70_000, "said more than it was asked"),
        (b"", "Connection reset by 127.0.0.1"),
    ],
)
@in_loop
async def test_a_proxy_that_does_not_let_us_through_is_tried_again(said: bytes, reason: str) -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(said)
        await writer.drain()

    async with raw(handle) as via, protocol() as http:
        there = endpoint("https://127.0.0.1:9/", proxy={"url": f"http://127.0.0.1:{via.port}"})
        outcome = failed(await http.deliver(message(), there))
        assert reason in outcome.reason
        assert outcome.retry is True
        assert http.connections() == (0, 0)


@in_loop
async def test_a_proxy_that_hangs_costs_the_connect_timeout() -> None:
    async def handle(reader: Reader, writer: Writer) -> None:
        await reader.read()

    async with raw(handle) as via:
        outcome = failed(
            await deliver(
                "https://127.0.0.1:9/", proxy={"url": f"http://127.0.0.1:{via.port}"}, connect_timeout_seconds=0.2
            )
        )
        assert outcome.reason.endswith("within 0.2 s (asking the proxy)")


@in_loop
async def test_the_environment_names_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with polite() as receiver, proxy() as via:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, via.url)
        assert await deliver(receiver.url) == Complete()
        assert via.heads == []


@in_loop
async def test_proxy_and_target_are_both_judged() -> None:
    http = Http(Surroundings({"http_allowed_networks": "127.0.0.1/32"}, "test"))
    for url, via in (("http://127.0.0.1:9/", "http://127.0.0.2:9"), ("http://169.254.169.254/", "http://127.0.0.1:9")):
        outcome = failed(await http.deliver(message(), endpoint(url, proxy={"url": via})))
        assert outcome.retry is False
        assert "not allowed" in outcome.reason
    await http.close()
