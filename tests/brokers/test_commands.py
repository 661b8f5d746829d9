"""`menzil endpoint` for brokers: made, listed and tested as a user types it."""

from __future__ import annotations

import asyncio
import importlib
import json
from typing import Any

import pytest

from tests.brokers.bodies import make_and_test, run
from tests.brokers.servers import NatsServer, Valkey, free_port
from tests.brokers.stage import fresh, jetstream
from tests.integration.cli.user import User


@pytest.mark.parametrize("kind", ["nats", "redis"])
def test_an_endpoint_of_a_broker_is_made_and_tested(
    db: str, valkey: Valkey, nats_server: NatsServer, kind: str
) -> None:
    stream, subject = fresh("S"), fresh("s")

    async def make() -> None:
        async with jetstream(nats_server.port, stream, subject):
            pass

    asyncio.run(make())
    config: dict[str, Any] = {"stream": stream}
    if kind == "nats":
        config |= {"servers": [f"127.0.0.1:{nats_server.port}"], "subject": subject}
        url = f"nats://127.0.0.1:{nats_server.port}/{subject}"
    else:
        config |= {"host": "127.0.0.1", "port": valkey.port}
        url = f"redis://127.0.0.1:{valkey.port}/0/{stream}"
    assert f"{stream} 1" in make_and_test(db, kind, config, url)


def test_a_test_that_failed_does_not_ask_for_a_worker(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    user, port = User(db), free_port()
    user.gets("settings", "set", "broker_allowed_networks", "127.0.0.1/32")
    config = json.dumps({"host": "127.0.0.1", "port": port, "stream": "s"})
    user.gets("endpoint", "create", "orders", "--protocol", "redis", "--config", config)
    command = importlib.import_module("menzil.cli.endpoint.test")
    wait = command._wait

    def tried(database: Any, message_id: int, _: float) -> Any:
        assert run(db).failed == 1
        return wait(database, message_id, 0)

    monkeypatch.setattr(command, "_wait", tried)
    tested = user.types("endpoint", "test", "orders")
    assert tested.exit_code == 1
    assert f"Connection refused by 127.0.0.1:{port}" in tested.stdout
    assert "It has not ended after 30 s: it failed, and is tried again." in tested.stderr
    assert "does a worker run" not in tested.stderr
