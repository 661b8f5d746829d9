"""Endpoints of brokers on the console: where they deliver to, what the broker said, and no word of HTTP or a secret."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from menzil import Menzil, Worker
from menzil.console import Access, Console
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import fresh, jetstream
from tests.console.seat import Browser, served

SECRET = "tok-3fd0e2a91c"


@dataclass
class Stage:
    """Two endpoints that work, and one whose stream does not exist."""

    browser: Browser
    places: dict[str, str]
    streams: dict[str, str]
    ids: dict[str, int] = field(default_factory=dict)


@pytest.fixture
def stage(db: str, valkey: Valkey, nats_server: NatsServer) -> Iterator[Stage]:
    stream, subject, entries = fresh("S"), fresh("s"), fresh("e")

    async def make() -> None:
        async with jetstream(nats_server.port, stream, subject):
            pass

    asyncio.run(make())
    headers = {"authorization": SECRET, "x-region": "eu"}
    nats = {"servers": [f"127.0.0.1:{nats_server.port}"], "capture_response": True, "headers": headers}
    redis = {"host": "127.0.0.1", "port": valkey.port, "stream": entries, "capture_response": True}
    with Menzil(db) as mq:
        mq.set_setting("broker_allowed_networks", "127.0.0.1/32")
        mq.create_endpoint("orders", "nats", nats | {"subject": subject, "stream": stream})
        mq.create_endpoint("entries", "redis", redis)
        mq.create_endpoint("lost", "redis", redis | {"stream": fresh("x"), "create_stream": False})
        mq.create_endpoint("vault", "redis", redis | {"auth": {"password": SECRET}})
        mq.channel_pause("vault")
        ids = {name: mq.send(name, {"order": 1}, ordering_key="k") for name in ("orders", "entries", "lost", "vault")}
        worker = Worker(db, janitors=False)
        thread = threading.Thread(target=worker.run)
        thread.start()
        try:
            ends = time.monotonic() + 60
            while not all(mq.status(ids[name]).attempts for name in ("orders", "entries", "lost")):
                assert time.monotonic() < ends
                time.sleep(0.05)
        finally:
            worker.stop()  # and waits for what is in flight
            thread.join(60)
    places = {
        "orders": f"nats://127.0.0.1:{nats_server.port}/{subject}",
        "entries": f"redis://127.0.0.1:{valkey.port}/0/{entries}",
    }
    with served(Console(db, local=Access.admin("ada"))) as browser:
        yield Stage(browser, places, {"orders": stream, "entries": entries}, ids)


def test_console_tells_of_brokers_in_their_own_words(stage: Stage) -> None:
    browser = stage.browser
    listed = browser.get("/endpoints")
    for name, place in stage.places.items():
        assert place in listed.words
        page = browser.get(f"/endpoints/{name}")
        assert place in page.words
        assert 'class="trouble"' not in page.text
        for word in ("Retry-After", "2xx", "5xx", "Rotate secret", "HTTP"):
            assert word not in page.words, word
        assert "1 taken" in page.text
        message = browser.get(f"/messages/{stage.ids[name]}")
        assert "What the broker said" in message.words
        assert f"Stream {stage.streams[name]}" in message.words
        assert f"What the broker would get to {place} id: {stage.ids[name]} ordering key: k" in message.words
        assert "POST" not in message.words
        plan = browser.get(f"/acts/send?channel={name}&payload=%7B%7D")
        assert "curl" not in plan.words
        assert f"What {place} gets" in plan.words
    assert "Sequence 1" in browser.get(f"/messages/{stage.ids['orders']}").words
    assert "Duplicate no" in browser.get(f"/messages/{stage.ids['entries']}").words
    assert "header x-region: eu" in browser.get(f"/messages/{stage.ids['orders']}").words
    lost = browser.get(f"/messages/{stage.ids['lost']}").words
    assert "What the broker said Class" in lost
    assert "not taken" in browser.get("/endpoints/lost").text


def test_no_page_about_a_broker_shows_a_secret(stage: Stage) -> None:
    paths = ["/endpoints", *(f"/endpoints/{name}" for name in stage.ids), "/audit"]
    paths += [f"/messages/{number}" for number in stage.ids.values()]
    paths += [f"/acts/endpoint-alter?endpoint={name}&edit=1" for name in stage.ids]
    for path in paths:
        assert SECRET not in stage.browser.get(path).text, path
        if not path.startswith("/acts"):
            assert SECRET not in stage.browser.get(f"{path}.json").text, path
