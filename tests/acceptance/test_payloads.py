"""Handlers with payload=…, on a real queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import menzil
from tests.acceptance.crew import Crew


@dataclass
class Order:
    number: int


@pytest.mark.parametrize("kind", ["async", "plain", "transaction"])
def test_a_handler_gets_the_payload_as_its_model(crew: Crew, db: str, kind: str) -> None:
    app, seen = menzil.Worker(db, endpoints=False, janitors=False), list[menzil.MessageOf[Order]]()

    async def awaited(message: menzil.MessageOf[Order]) -> None:
        seen.append(message)

    def plain(message: menzil.MessageOf[Order], conn: psycopg.Connection[Any] | None = None) -> None:
        seen.append(message)

    app.handler("work", payload=Order, transaction=kind == "transaction")(awaited if kind == "async" else plain)
    crew.ask("select menzil.channel_set('work')")
    good = crew.ask("""select menzil.send('work', '{"number": 7}')""")
    bad = crew.ask("""select menzil.send('work', '{"number": "seven"}')""")
    tally = app.run(once=True)
    assert (tally.delivered, tally.failed) == (1, 1)
    (message,) = seen
    assert message.payload == Order(7)
    assert (message.id, message.channel, message.attempt) == (good, "work", 1)
    assert message.created_at is not None
    said = crew.ask("select last_error from menzil.queue where id = %s", bad)
    assert "The payload does not fit Order: number: expected int, not a text." in said
