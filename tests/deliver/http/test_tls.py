"""TLS: who the other side is gets checked by the name in the URL, whatever address it has."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from pathlib import Path
from typing import Any

import pytest
import uvloop
from cryptography.hazmat.primitives import serialization

from menzil.deliver.http.tls import Contexts
from menzil.model.outcome import Complete
from tests.deliver.http.conftest import Authority
from tests.deliver.http.receivers import OK, Reader, Writer, answering, polite, raw
from tests.deliver.http.stage import deliver, endpoint, failed, in_loop, message, protocol


@in_loop
async def test_a_receiver_is_verified_by_the_endpoints_ca(authority: Authority) -> None:
    async with polite(tls=authority.server("127.0.0.1")) as receiver:
        assert await deliver(receiver.url, tls={"ca": authority.pem}) == Complete()
        assert receiver.last.headers["host"] == receiver.url.removeprefix("https://")


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_connections_with_tls_are_kept(authority: Authority, loop: Any) -> None:
    async def main() -> None:
        async with raw(answering(OK), authority.server("127.0.0.1")) as receiver, protocol() as http:
            there = endpoint(receiver.url, tls={"ca": authority.pem})
            for _ in range(3):
                assert await http.deliver(message(), there) == Complete()
            assert receiver.connections == 1

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


@in_loop
async def test_the_name_of_the_url_is_asked_for_and_checked(authority: Authority) -> None:
    asked: list[str | None] = []
    context = authority.server("localhost")
    context.sni_callback = lambda _sock, name, _context: asked.append(name)
    async with polite(tls=context) as receiver:
        # localhost may have an address of version 6 too, where nobody listens.
        assert await deliver(receiver.url.replace("127.0.0.1", "localhost"), tls={"ca": authority.pem}) == Complete()
        assert asked == ["localhost"]
        outcome = failed(await deliver(receiver.url, tls={"ca": authority.pem}))
    assert outcome.retry is True
    assert "was not accepted: IP address mismatch, certificate is not valid for '127.0.0.1'" in outcome.reason


@in_loop
async def test_unknown_wrong_and_expired_certificates_are_not_accepted(
    authority: Authority, stranger: Authority
) -> None:
    good, expired = authority.server("127.0.0.1"), authority.server("127.0.0.1", expired=True)
    wrong = authority.server("example.org")
    for context, tls, why in [
        (good, None, "unable to get local issuer certificate"),
        (good, {"ca": stranger.pem}, "unable to get local issuer certificate"),
        (expired, {"ca": authority.pem}, "certificate has expired"),
        (wrong, {"ca": authority.pem}, "certificate is not valid for '127.0.0.1'"),
    ]:
        async with polite(tls=context) as receiver:
            outcome = failed(await deliver(receiver.url, **({"tls": tls} if tls else {})))
            assert outcome.reason.startswith("The TLS certificate of 127.0.0.1:")
            assert why in outcome.reason
            assert outcome.retry is True
            assert receiver.seen == []
            assert await deliver(receiver.url, tls={"verify": False}) == Complete()


@in_loop
async def test_a_receiver_that_wants_a_client_certificate_gets_it(authority: Authority, stranger: Authority) -> None:
    left = set(Path(tempfile.gettempdir()).glob("menzil-*"))
    async with polite(tls=authority.server("127.0.0.1", clients=authority.ca)) as receiver, protocol() as http:
        trust = {"ca": authority.pem}
        known = endpoint(receiver.url, tls=trust | authority.client())
        assert await http.deliver(message(), known) == Complete()
        for unknown in (trust, trust | stranger.client()):
            # The connection of the known one is kept and must not be used.
            outcome = failed(await http.deliver(message(), endpoint(receiver.url, tls=unknown)))
            assert outcome.retry is True
            assert outcome.reason.startswith(("TLS failed with 127.0.0.1:", "Connection "))
        assert len(receiver.seen) == 1
    assert set(Path(tempfile.gettempdir()).glob("menzil-*")) == left


@in_loop
async def test_a_tls_config_that_cannot_be_used_is_refused_for_good(authority: Authority) -> None:
    mine, other = authority.client(), authority.client()
    key = serialization.load_pem_private_key(mine["key"].encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"pw")
    ).decode()
    for tls in (
        {"cert": mine["cert"], "key": other["key"]},
        {"cert": mine["cert"], "key": locked},  # and nobody is asked for its password at the terminal
        {"cert": mine["cert"], "key": "-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----"},
        {"ca": "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----"},
    ):
        outcome = failed(await deliver("https://127.0.0.1:9/", tls=tls))
        assert outcome.retry is False
        assert outcome.reason.startswith("The tls config of the endpoint cannot be used: ")


@in_loop
async def test_plain_text_where_tls_is_expected_fails(authority: Authority) -> None:
    async def plain(reader: Reader, writer: Writer) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        await reader.read()

    async with raw(plain) as receiver:
        outcome = failed(await deliver(receiver.url.replace("http:", "https:")))
        assert outcome.retry is True
        assert outcome.reason.startswith("TLS failed with 127.0.0.1:")
    async with raw(answering(OK), authority.server("127.0.0.1")) as receiver:
        assert failed(await deliver(receiver.url.replace("https:", "http:"))).retry is True


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_handshake_that_hangs_ends_with_the_connect_timeout(loop: Any) -> None:
    async def main() -> None:
        async def hang(reader: Reader, writer: Writer) -> None:
            await reader.read()
            await asyncio.Event().wait()

        async with raw(hang) as receiver, protocol() as http:
            there = endpoint(receiver.url.replace("http:", "https:"), timeout_seconds=60, connect_timeout_seconds=0.2)
            started = asyncio.get_running_loop().time()
            outcome = failed(await http.deliver(message(), there))
            assert asyncio.get_running_loop().time() - started < 30
            assert outcome.reason == f"No connection to 127.0.0.1:{receiver.port} within 0.2 s (TLS handshake)"
            assert outcome.retry is True

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


@in_loop
async def test_old_versions_of_tls_are_not_spoken(authority: Authority) -> None:
    context = authority.server("127.0.0.1")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    async with polite(tls=context) as receiver:
        assert await deliver(receiver.url, tls={"ca": authority.pem}) == Complete()
    assert Contexts().of(None).minimum_version == ssl.TLSVersion.TLSv1_2
