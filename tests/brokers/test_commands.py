"""`menzil endpoint` for brokers: made, listed and tested as a user types it."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from menzil import Worker
from tests.brokers.servers import NatsServer, Valkey
from tests.brokers.stage import fresh, jetstream
from tests.integration.cli.user import User


@pytest.mark.parametrize("kind", ["nats", "redis"])
def test_an_endpoint_of_a_broker_is_made_and_tested(
    db: str, valkey: Valkey, nats_server: NatsServer, kind: str
) -> None:
    user, stream, subject = User(db), fresh("S"), fresh("s")

    async def make() -> None:
        async with jetstream(nats_server.port, stream, subject):
            pass

    asyncio.run(make())
    config = {"capture_response": True, "stream": stream}
    if kind == "nats":
        config |= {"servers": [f"127.0.0.1:{nats_server.port}"], "subject": subject}
        place, where = f"nats://127.0.0.1:{nats_server.port}/{subject}", f"{stream} 1"
    else:
        config |= {"host": "127.0.0.1", "port": valkey.port}
        place, where = f"redis://127.0.0.1:{valkey.port}/0/{stream}", f"{stream} 1"
    made = user.types("endpoint", "create", "orders", "--protocol", kind, "--config", json.dumps(config))
    assert made.exit_code == 0
    assert made.stderr.splitlines() == [
        "127.0.0.1 is a loopback address: deliveries there are refused until a setting allows them.",
        "hint: menzil settings set broker_allowed_networks 127.0.0.1/32",
    ]
    assert user.types("settings", "set", "broker_allowed_networks", "127.0.0.1/32").exit_code == 0
    assert place in user.types("endpoint", "list").stdout
    worker = Worker(db, janitors=False)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        tested = user.types("endpoint", "test", "orders")
    finally:
        worker.stop()
        thread.join(60)
    assert tested.exit_code == 0, tested.output
    assert where in tested.stdout
