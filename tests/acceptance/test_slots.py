"""Slots outlive what handlers do to them: no message stays in a worker's hands, and no neighbour pays."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

import menzil
from tests.acceptance.crew import Crew
from tests.acceptance.test_handlers import state


@pytest.fixture
def app(db: str) -> menzil.Worker:
    return menzil.Worker(db, endpoints=False, janitors=False)


def drain(app: menzil.Worker) -> Any:
    """Run it until nothing is left; a message that stays in its hands would keep it for ever."""
    return asyncio.run(asyncio.wait_for(app.serve(once=True), 60))


class Table:
    """Like an array of numpy: it is compared piece by piece, and what comes out is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise ValueError("the truth value of a table is ambiguous")


def test_a_response_that_cannot_be_compared_fails_its_message_only(crew: Crew, app: menzil.Worker) -> None:
    @app.handler("work", concurrency=1)
    async def handle(message: menzil.Message) -> Any:
        return menzil.Complete(response=Table()) if message.payload == "table" else None  # type: ignore[arg-type]

    table, _ = crew.send("work", "table", "well")
    tally = drain(app)
    assert (tally.delivered, tally.failed) == (1, 1)
    assert "Table is not JSON serializable" in state(crew, table)[2]


def test_metadata_that_the_json_library_refuses_fail_their_message_only(crew: Crew, db: str) -> None:
    def loads(text: str) -> Any:
        found = json.loads(text)
        if not isinstance(found, str):
            raise TypeError("a text is expected")
        return found

    app = menzil.Worker(db, endpoints=False, janitors=False, loads=loads)

    @app.handler("work", concurrency=1)
    async def handle(message: menzil.Message) -> None:
        if message.payload == "bad":
            raise LookupError("no such customer")

    crew.send("work")
    with menzil.Menzil(db) as mq:
        bad, _ = (mq.send("work", body, metadata={"tenant": "ada"}) for body in ("bad", "well"))
    tally = drain(app)
    assert (tally.delivered, tally.failed) == (1, 1)
    assert "LookupError: no such customer" in state(crew, bad)[2]


@pytest.mark.parametrize("end", ["returns", "raises"])
def test_a_handler_that_cancels_its_own_task_cancels_no_other_message(crew: Crew, app: menzil.Worker, end: str) -> None:
    @app.handler("work", concurrency=1)
    async def handle(message: menzil.Message) -> None:
        await asyncio.sleep(0)
        if message.payload.startswith("bad"):
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            if end == "raises":
                raise LookupError("no such customer")

    # In the middle of many, so that others wait for the same slot.
    crew.send("work", *(f"bad {number}" if number % 50 == 40 else f"well {number}" for number in range(500)))
    tally = drain(app)
    assert tally.delivered == (500 if end == "returns" else 490)
    assert crew.ask("select count(*) from menzil.queue where last_error like '%%Cancelled%%'") == 0


def test_what_waits_for_a_slot_that_is_cancelled_between_two_messages_is_delivered(
    crew: Crew, app: menzil.Worker
) -> None:
    """As by a timer that a handler set and never stopped."""
    cancelled = []

    @app.handler("work", concurrency=1)
    async def handle(message: menzil.Message) -> None:
        if message.payload.startswith("bad"):
            time.sleep(0.01)  # longer than a turn, so that the slot lets others run before the next message
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(task.cancel)
            cancelled.append(task)

    crew.send("work", *(f"bad {number}" if number % 500 == 400 else f"well {number}" for number in range(1000)))
    assert drain(app).delivered == 1000
    assert len(cancelled) == 2
