"""How a connection of AMQP begins: logins, limits, TLS; and no secret in any text."""

from __future__ import annotations

import ssl
import sys
from typing import Any

import pytest
import trustme
from pamqp import commands

from menzil.deliver.amqp import Amqp
from menzil.deliver.protocol import Surroundings
from menzil.deliver.registry import Protocols, UnknownProtocolError
from tests.brokers.amqp.peer import Line, amqp_endpoint, peer
from tests.brokers.stage import completed, failed, in_loop, message, speaking

PLAIN = {"type": "plain", "username": "shop", "password": "canary-word"}


async def confirm_one(line: Line) -> None:
    line.ack((await line.message()).tag)
    await line.end()


@pytest.mark.parametrize(
    ("config", "mechanism", "response"),
    [({}, "PLAIN", "\0guest\0guest"), ({"auth": PLAIN}, "PLAIN", "\0shop\0canary-word")],
)
@in_loop
async def test_the_server_gets_the_login_and_what_we_understand(
    config: dict[str, Any], mechanism: str, response: str
) -> None:
    async def talk(line: Line) -> None:
        await line.greet(frame_max=0, heartbeat=0)
        assert line.login is not None
        assert line.tuned is not None
        assert line.opened is not None
        assert (line.login.mechanism, line.login.response) == (mechanism, response)
        about: Any = line.login.client_properties
        assert about["capabilities"]["authentication_failure_close"] is True
        assert about["connection_name"] == "menzil test"
        assert (line.tuned.channel_max, line.tuned.frame_max, line.tuned.heartbeat) == (1, 131072, 20)
        assert line.opened.virtual_host == "shop"
        await confirm_one(line)

    async with peer(talk) as port, speaking(Amqp) as broker:
        completed(await broker.deliver(message(), amqp_endpoint(port, vhost="shop", **config)))


@pytest.mark.parametrize("answers", [True, False], ids=["403", "reset"])
@in_loop
async def test_a_wrong_password_blames_the_endpoint_and_is_in_no_text(answers: bool) -> None:
    async def talk(line: Line) -> None:
        await line.reader.readexactly(8)
        able: Any = {"publisher_confirms": True}
        line.say(commands.Connection.Start(0, 9, {"capabilities": able}, "PLAIN", "en_US"), 0)
        await line.expect(commands.Connection.StartOk)
        if answers:  # a server may repeat what it got
            line.close(403, "ACCESS_REFUSED - Login was refused: \0shop\0canary-word")

    async with peer(talk) as port, speaking(Amqp) as broker:
        kind, reason = failed(await broker.deliver(message(), amqp_endpoint(port, auth=PLAIN)))
        assert kind == "endpoint"
        assert "canary" not in reason
        assert ("403 ACCESS_REFUSED" if answers else "after the login: is the password right?") in reason


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (commands.Connection.Start(0, 9, {}, "PLAIN", "en_US"), "does not confirm messages"),
        (
            commands.Connection.Start(0, 9, {"capabilities": {"publisher_confirms": True}}, "AMQPLAIN X", "en_US"),
            "has no login PLAIN, it has AMQPLAIN X",
        ),
        (commands.Connection.Tune(0, 0, 0), ""),
        (commands.Channel.OpenOk(), ""),
    ],
)
@in_loop
async def test_a_server_that_cannot_do_what_is_needed_gets_nothing(start: Any, words: str) -> None:
    async def talk(line: Line) -> None:
        await line.reader.readexactly(8)
        line.say(start, 0)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        kind, reason = failed(await broker.deliver(message(), amqp_endpoint(port, timeout_seconds=1)))
        assert kind == "endpoint"
        assert words in reason


@pytest.mark.parametrize("method", [commands.Connection.Close(530, "NOT_ALLOWED - vhost x not found", 10, 40)])
@in_loop
async def test_a_vhost_that_is_missing_blames_the_endpoint(method: Any) -> None:
    async def talk(line: Line) -> None:
        await line.reader.readexactly(8)
        able: Any = {"publisher_confirms": True}
        line.say(commands.Connection.Start(0, 9, {"capabilities": able}, "PLAIN", "en_US"), 0)
        await line.expect(commands.Connection.StartOk)
        line.say(commands.Connection.Tune(2047, 131072, 60), 0)
        await line.expect(commands.Connection.TuneOk)
        await line.expect(commands.Connection.Open)
        line.say(method, 0)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        kind, reason = failed(await broker.deliver(message(), amqp_endpoint(port, vhost="x")))
        assert (kind, "530 NOT_ALLOWED - vhost x not found" in reason) == ("endpoint", True)


def client_of(ca: trustme.CA, name: str = "client") -> dict[str, str]:
    issued = ca.issue_cert("client@example.org", common_name=name)
    cert = b"".join(pem.bytes() for pem in issued.cert_chain_pems).decode()
    return {"ca": ca.cert_pem.bytes().decode(), "cert": cert, "key": issued.private_key_pem.bytes().decode()}


@in_loop
async def test_tls_with_an_own_ca_and_a_certificate_of_the_client(ca: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    logins = []

    async def talk(line: Line) -> None:
        await line.greet()
        assert line.login is not None
        logins.append((line.login.mechanism, line.login.response))
        await confirm_one(line)

    tls = client_of(ca)
    async with peer(talk, tls=context) as port, speaking(Amqp) as broker:
        external = amqp_endpoint(port, tls=tls, auth={"type": "external"})
        completed(await broker.deliver(message(), external))
        completed(await broker.deliver(message(), amqp_endpoint(port, tls=tls)))
        assert logins == [("EXTERNAL", ""), ("PLAIN", "\0guest\0guest")]
        for bad, words in [
            (None, ""),
            ({key: tls[key] for key in ("cert", "key")}, "was not accepted"),
            ({"ca": tls["ca"]}, ""),  # the server wants a certificate of the client
            (client_of(trustme.CA()) | {"ca": tls["ca"]}, ""),
        ]:
            config: dict[str, Any] = {"timeout_seconds": 5} | ({} if bad is None else {"tls": bad})
            kind, reason = failed(await broker.deliver(message(), amqp_endpoint(port, **config)))
            assert kind == "endpoint"
            assert words in reason
            assert "PRIVATE" not in reason
        wrong_name = amqp_endpoint(port, tls=tls, host="localhost")
        assert "was not accepted" in failed(await broker.deliver(message(), wrong_name))[1]
        assert len(logins) == 2


@in_loop
async def test_what_a_server_says_is_stored_without_secrets_and_control_characters() -> None:
    async def talk(line: Line) -> None:
        await line.greet()
        await line.message()
        line.close_channel(404, "NOT_FOUND - canary-word \x1b[31m " + "x" * 150)
        await line.end()

    async with peer(talk) as port, speaking(Amqp) as broker:
        kind, reason = failed(await broker.deliver(message(), amqp_endpoint(port, auth=PLAIN)))
        assert kind == "endpoint"
        assert not [word for word in ("canary", "\x1b") if word in reason]
        assert len(reason) <= 200


def test_a_worker_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("menzil.deliver.amqp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pamqp", None)
    with pytest.raises(UnknownProtocolError, match=r"it needs pamqp: pip install 'menzil\[amqp\]'"):
        Protocols(Surroundings({}, "test")).get("amqp")
