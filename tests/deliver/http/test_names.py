"""Names are looked up and judged for every attempt, and connections go to the judged addresses alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from menzil.deliver.guard import door
from menzil.deliver.http import Http
from menzil.deliver.protocol import Surroundings
from menzil.model.outcome import Complete
from tests.deliver.http.receivers import OK, answering, polite, raw
from tests.deliver.http.stage import LOOPBACK, endpoint, failed, in_loop, message


class Names:
    """A name server with one name."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, host: str) -> list[str]:
        self.gate.wait(10)
        assert host == "shop.example"
        return self.addresses


@asynccontextmanager
async def _protocol(names: Names, **settings: str) -> AsyncIterator[Http]:
    http = Http(Surroundings(settings or LOOPBACK, "test"), lookup=names)
    try:
        yield http
    finally:
        names.gate.set()
        await http.close()


def _named(url: str) -> str:
    return url.replace("127.0.0.1", "shop.example")


@in_loop
async def test_the_host_header_is_the_name_and_the_connection_goes_to_the_address() -> None:
    async with polite() as receiver, _protocol(Names("127.0.0.1")) as http:
        assert await http.deliver(message(), endpoint(_named(receiver.url))) == Complete()
        assert receiver.last.headers["host"] == _named(receiver.url).removeprefix("http://")


@in_loop
async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with polite() as receiver, _protocol(Names("127.0.0.2", "127.0.0.1")) as http:
        assert await http.deliver(message(), endpoint(_named(receiver.url))) == Complete()


@in_loop
async def test_the_last_address_is_named_when_none_answers() -> None:
    async with raw(answering(OK)) as receiver, _protocol(Names("127.0.0.2", "127.0.0.3")) as http:
        outcome = failed(await http.deliver(message(), endpoint(_named(receiver.url))))
        assert outcome.reason == f"Connection refused by 127.0.0.3:{receiver.port}"


@in_loop
async def test_a_slow_name_server_costs_no_more_than_the_deadline() -> None:
    names = Names("127.0.0.1")
    names.gate.clear()
    async with _protocol(names) as http:
        started = asyncio.get_running_loop().time()
        outcome = failed(await http.deliver(message(), endpoint("http://shop.example/", timeout_seconds=0.2)))
        assert asyncio.get_running_loop().time() - started < 8  # the name server takes 10 s
        assert outcome.retry is True
        assert "shop.example" in outcome.reason


@in_loop
async def test_a_name_that_moves_to_a_forbidden_address_is_refused_although_a_connection_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(door, "FRESH_SECONDS", 0.0)
    names = Names("127.0.0.1")
    async with raw(answering(OK)) as receiver, _protocol(names, http_allowed_networks="127.0.0.1/32") as http:
        there = endpoint(_named(receiver.url))
        assert await http.deliver(message(), there) == Complete()
        assert http.connections() == (0, 1)
        names.addresses = ["127.0.0.1", "169.254.169.254"]
        outcome = failed(await http.deliver(message(), there))
        assert outcome.retry is False
        assert "169.254.169.254" in outcome.reason


@in_loop
async def test_a_name_that_moves_takes_its_messages_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "FRESH_SECONDS", 0.0)
    names = Names("127.0.0.1")
    async with raw(answering(OK)) as receiver, _protocol(names) as http:
        there = endpoint(_named(receiver.url))
        assert await http.deliver(message(), there) == Complete()
        names.addresses = ["127.0.0.2"]
        assert "127.0.0.2" in failed(await http.deliver(message(), there)).reason
        names.addresses = ["127.0.0.1"]
        assert await http.deliver(message(), there) == Complete()
        assert receiver.connections == 1


@in_loop
async def test_close_lets_nobody_connect_any_more() -> None:
    names = Names("127.0.0.1")
    names.gate.clear()
    async with polite() as receiver, _protocol(names) as http:
        running = asyncio.create_task(http.deliver(message(), endpoint(_named(receiver.url))))
        await asyncio.sleep(0)
        await http.close()
        names.gate.set()
        assert failed(await running).reason == "The worker is stopping"
        assert receiver.seen == []
