"""Credentials: fixed ones, and tokens that are fetched, shared and renewed."""

from __future__ import annotations

import asyncio
import base64
from typing import Any
from urllib.parse import parse_qs

import pytest
from aiohttp import web

from menzil.model.outcome import Complete, Fail
from tests.deliver.http.receivers import Answerer, Seen, polite, raw
from tests.deliver.http.stage import completed, deliver, endpoint, failed, in_loop, message, protocol, until


@in_loop
async def test_basic_credentials_are_sent() -> None:
    async with polite() as receiver:
        completed(await deliver(receiver.url, auth={"type": "basic", "username": "me", "password": "pä:ss"}))
        kind, _, value = receiver.last.headers["authorization"].partition(" ")
        assert (kind, base64.b64decode(value).decode()) == ("Basic", "me:pä:ss")


@in_loop
async def test_a_bearer_token_is_sent_and_cannot_break_out_of_its_header() -> None:
    async with polite() as receiver:
        completed(await deliver(receiver.url, auth={"type": "bearer", "token": "abc.def"}))
        assert receiver.last.headers["authorization"] == "Bearer abc.def"
        assert failed(await deliver(receiver.url, auth={"type": "bearer", "token": "a\r\nx: y"})).retry is False


class Server:
    """A receiver whose /token hands out t1, t2, … and whose other paths accept the tokens in `good`."""

    def __init__(self, expires_in: object = 3600) -> None:
        self.issued = 0
        self.good: set[str] = set()
        self.expires_in = expires_in

    def __call__(self, seen: Seen) -> web.Response:
        if seen.path == "/token":
            self.issued += 1
            self.good = {f"t{self.issued}"}
            said = {"access_token": f"t{self.issued}", "token_type": "Bearer", "expires_in": self.expires_in}
            return web.json_response({key: value for key, value in said.items() if value is not None})
        good = seen.headers.get("authorization", "").removeprefix("Bearer ") in self.good
        return web.Response(status=200 if good else 401)


def _oauth(url: str, **more: str) -> dict[str, Any]:
    return {"type": "oauth2", "token_url": url + "/token", "client_id": "me", "client_secret": "s3cret/+&", **more}


@pytest.mark.parametrize("way", ["basic", "body"])
@in_loop
async def test_a_token_is_fetched_with_the_clients_credentials(way: str) -> None:
    async with polite(Server()) as receiver:
        auth = _oauth(receiver.url, client_auth=way, scope="a b", audience="https://api")
        completed(await deliver(receiver.url + "/hook", auth=auth))
        asked, used = receiver.seen
        form = {key: value[0] for key, value in parse_qs(asked.body.decode(), strict_parsing=True).items()}
        assert form.pop("grant_type") == "client_credentials"
        assert (form.pop("scope"), form.pop("audience")) == ("a b", "https://api")
        if way == "body":
            assert form == {"client_id": "me", "client_secret": "s3cret/+&"}
            assert "authorization" not in asked.headers
        else:
            value = base64.b64decode(asked.headers["authorization"].removeprefix("Basic ")).decode()
            assert (value, form) == ("me:s3cret%2F%2B%26", {})
        assert used.headers["authorization"] == "Bearer t1"


@in_loop
async def test_a_token_is_fetched_once_for_many_messages() -> None:
    server = Server()
    async with polite(server) as receiver, protocol() as http:
        there = endpoint(receiver.url + "/hook", auth=_oauth(receiver.url))
        assert set(await asyncio.gather(*[http.deliver(message(), there) for _ in range(20)])) == {Complete()}
        assert set(await asyncio.gather(*[http.deliver(message(), there) for _ in range(20)])) == {Complete()}
        assert server.issued == 1


@in_loop
async def test_a_refused_token_is_renewed_once_in_the_same_attempt() -> None:
    server = Server()
    async with polite(server) as receiver, protocol() as http:
        there = endpoint(receiver.url + "/hook", auth=_oauth(receiver.url))
        assert await http.deliver(message(), there) == Complete()
        server.good = set()  # withdrawn
        assert set(await asyncio.gather(*[http.deliver(message(), there) for _ in range(10)])) == {Complete()}
        assert server.issued == 2
        hooks = [seen for seen in receiver.seen if seen.path == "/hook"]
        assert len({seen.headers["webhook-id"] for seen in hooks}) == 11


@in_loop
async def test_a_late_refusal_of_an_old_token_does_not_throw_away_the_new_one() -> None:
    server = Server()
    renewed = asyncio.Event()

    async def answer(seen: Seen) -> web.Response:
        said = server(seen)
        if "x-slow" in seen.headers and said.status == 401:
            await renewed.wait()
        return said

    async with polite(answer) as receiver, protocol() as http:
        there = endpoint(receiver.url + "/hook", auth=_oauth(receiver.url))
        assert await http.deliver(message(), there) == Complete()
        server.good = set()
        slow = asyncio.create_task(http.deliver(message(headers={"X-Slow": "1"}), there))
        await until(lambda: "x-slow" in receiver.last.headers)
        assert await http.deliver(message(), there) == Complete()
        renewed.set()
        assert await slow == Complete()
        assert server.issued == 2


@in_loop
async def test_a_receiver_that_refuses_every_token_is_asked_twice() -> None:
    def answer(seen: Seen) -> web.Response:
        return web.json_response({"access_token": "t"}) if seen.path == "/token" else web.Response(status=401)

    async with polite(answer) as receiver:
        outcome = failed(await deliver(receiver.url + "/hook", auth=_oauth(receiver.url)))
        assert (outcome.reason, outcome.retry) == ("HTTP 401 Unauthorized", False)
        assert [seen.path for seen in receiver.seen] == ["/token", "/hook", "/token", "/hook"]


@pytest.mark.parametrize(("expires_in", "issued"), [(0, 3), (-5, 3), ("3600", 1), (None, 1), (10**30, 1)])
@in_loop
async def test_a_token_is_used_until_it_expires(expires_in: object, issued: int) -> None:
    server = Server(expires_in)
    async with polite(server) as receiver, protocol() as http:
        there = endpoint(receiver.url + "/hook", auth=_oauth(receiver.url))
        for _ in range(3):
            assert await http.deliver(message(), there) == Complete()
        assert server.issued == issued


def _token_says(status: int = 200, **answer: Any) -> Answerer:
    return lambda _: web.Response(status=status, content_type="application/json", **answer)


@pytest.mark.parametrize(
    ("answer", "reason", "retry"),
    [
        (_token_says(401, text='{"error": "no"}'), 'HTTP 401 Unauthorized: {"error": "no"}', False),
        (_token_says(410), "HTTP 410 Gone", False),
        (_token_says(302), "HTTP 302 Found", False),
        (_token_says(500), "HTTP 500 Internal Server Error", True),
        (_token_says(429, headers={"Retry-After": "9"}), "HTTP 429 Too Many Requests", 9.0),
        (_token_says(200, text="nonsense"), "with something else than a token", True),
        (_token_says(200, text="[]"), "with something else than a token", True),
        (_token_says(200, text="[" * 60_000), "with something else than a token", True),
        (_token_says(200, text='{"access_token": "a\\r\\nb"}'), "with a token that is no bearer token", True),
        (_token_says(200, text='{"access_token": "a", "token_type": 1}'), "with a token that is no bearer token", True),
        (_token_says(200, text='{"access_token": "a", "expires_in": "x"}'), "with something else than a token", True),
    ],
)  # fmt: skip
@in_loop
async def test_a_token_server_that_fails_decides_for_the_message(answer: Answerer, reason: str, retry: object) -> None:
    async with polite(answer) as receiver:
        outcome = failed(await deliver(receiver.url + "/hook", auth=_oauth(receiver.url)))
        assert outcome.reason == f"No token: the token server answered {reason}"
        assert (outcome.retry, outcome.disable) == (retry, False)
        assert [seen.path for seen in receiver.seen] == ["/token"]


@in_loop
async def test_a_token_server_that_hangs_costs_the_deadline_and_holds_nobody() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw(hang) as receiver, protocol() as http:
        auth = _oauth(receiver.url.removesuffix("/hook"))
        there = endpoint(receiver.url, auth=auth, timeout_seconds=0.3)
        started = asyncio.get_running_loop().time()
        outcomes = await asyncio.gather(*[http.deliver(message(), there) for _ in range(100)])
        assert asyncio.get_running_loop().time() - started < 15  # one after the other they would take 30 s
        for outcome in outcomes:
            assert isinstance(outcome, Fail)
            assert outcome.retry is True
            assert "No complete answer within 0.3 s" in outcome.reason


@in_loop
async def test_the_token_url_is_guarded_too() -> None:
    async with polite(Server()) as receiver:
        auth = _oauth("http://user@127.0.0.1")
        outcome = failed(await deliver(receiver.url, auth=auth))
        assert outcome.retry is False
        assert receiver.seen == []
