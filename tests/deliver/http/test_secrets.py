"""A receiver that says back what it was sent does not get our secrets into the database."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from menzil.deliver.http.excerpt import Hider
from tests.deliver.http.receivers import Seen, polite, raw
from tests.deliver.http.stage import deliver, endpoint, failed, in_loop, message

CANARY = 'c4nary/"+& \\x'
SIGNING = "whsec_" + base64.b64encode(CANARY.encode() * 2).decode()


def _echo(seen: Seen) -> web.Response:
    if seen.path == "/token":
        return web.json_response({"access_token": "c4nary-token-of-the-server"})
    said = json.dumps(seen.headers) + "\n" + str(seen.headers) + "\n" + seen.body.decode("latin-1")
    return web.Response(status=500, text=said * 2, headers={"X-Request-Id": seen.headers.get("x-api-key", "-").strip()})


def _configs(url: str) -> list[dict[str, Any]]:
    oauth = {"type": "oauth2", "token_url": url + "/token", "client_id": "me", "client_secret": CANARY}
    keys = {"access_key_id": "AK", "secret_access_key": CANARY, "region": "r", "service": "s", "session_token": CANARY}
    return [
        {"auth": {"type": "bearer", "token": CANARY}},
        {"auth": {"type": "basic", "username": "me", "password": CANARY}},
        {"auth": oauth},
        {"auth": {"type": "sigv4", **keys}},
        {"headers": {"X-Api-Key": CANARY, "Cookie": CANARY}},
        {"signing": {"secret": SIGNING}},
    ]


@pytest.mark.parametrize("number", range(6))
@in_loop
async def test_no_secret_comes_back_in_an_outcome(number: int) -> None:
    async with polite(_echo) as receiver:
        config = _configs(receiver.url)[number]
        sent = message(headers={"X-Session-Token": "c4nary-of-the-message"})
        outcome = failed(await deliver(receiver.url, sent, **config))
        assert receiver.last.headers["x-session-token"] == "c4nary-of-the-message"
        seen = repr(outcome)
        credentials = receiver.last.headers.get("authorization", "Basic none")
    assert "***" in seen
    assert "c4nary" not in seen
    assert base64.b64encode(CANARY.encode()).decode()[:12] not in seen
    assert credentials.split("Signature=")[-1].split(" ")[-1] not in seen.replace("none", "")


@in_loop
async def test_a_receiver_that_says_back_its_url_does_not_give_the_credential_in_it_away() -> None:
    async with polite(lambda seen: web.Response(status=500, text=seen.path)) as receiver:
        outcome = failed(await deliver(receiver.url + "/hook?env=prod&sig=c4nary%2Fx&api_key=c4nary"))
    assert outcome.response is not None
    assert outcome.response["body"] == "/hook?env=prod&sig=***&api_key=***"
    assert "c4nary" not in repr(outcome)


@pytest.mark.parametrize("way", ["basic", "body"])
@in_loop
async def test_a_token_server_that_says_back_what_it_was_sent_gives_nothing_away(way: str) -> None:
    def echo(seen: Seen) -> web.Response:
        return web.Response(status=400, text=f"{seen.headers} {seen.body.decode()}")

    async with polite(echo) as receiver:
        auth = {"type": "oauth2", "token_url": receiver.url + "/token", "client_id": "me", "client_secret": CANARY}
        outcome = failed(await deliver(receiver.url, auth=auth | {"client_auth": way}))
        said = receiver.last.headers.get("authorization", "Basic none").removeprefix("Basic ")
    assert outcome.reason.startswith("No token: the token server answered HTTP 400")
    assert "***" in repr(outcome)
    assert "c4nary" not in repr(outcome)
    assert said not in repr(outcome)


@in_loop
async def test_a_transport_error_names_no_secret() -> None:
    async def close(reader: object, writer: object) -> None:
        return

    async with raw(close) as receiver:
        url = receiver.url + "?token=c4nary"
        outcome = failed(await deliver(url, auth={"type": "bearer", "token": CANARY}))
        assert "c4nary" not in repr(outcome)
        assert "c4nary" not in repr(endpoint(url))


@settings(deadline=None)  # the machine may be busy
@given(st.integers(0, 3000), st.integers(0, 200), st.integers(0, 3000))
def test_a_secret_is_hidden_wherever_an_excerpt_is_cut(before: int, times: int, after: int) -> None:
    hidden = Hider(["c4nary-secret", "another"]).hide("x" * before + "c4nary-secret" * times + "y" * after)
    assert len(hidden) <= 2000
    assert "c4" not in hidden
    if before + after + 13 * times <= 2000:
        assert hidden == "x" * before + "***" * times + "y" * after


def test_the_longer_of_two_secrets_is_hidden_whole() -> None:
    assert Hider(["abcd", "abcd-efgh"]).hide("abcd-efgh abcd") == "*** ***"


def test_what_looks_like_credentials_is_hidden_whoever_owns_it() -> None:
    said = "Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc- and Basic dXNlcjpwYXNzd29yZA== but a bearer token is a word"
    assert Hider(()).hide(said) == "Bearer *** and Basic *** but a bearer token is a word"
