"""Plain functions as handlers: how many run at once, and so how many connections a worker's ORM opens."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

import menzil
from tests.acceptance.crew import Crew, until


class Gate:
    """Counts who is inside, and lets everybody out when `most` have come or the queue has no more to give."""

    def __init__(self) -> None:
        self.inside = 0
        self.most = 0
        self.open = threading.Event()
        self._lock = threading.Lock()

    def pass_through(self, message: menzil.Message) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.open.wait(30)
        with self._lock:
            self.inside -= 1


def run(crew: Crew, app: menzil.Worker, gate: Gate, expected: int, total: int) -> menzil.Tally:
    """Drain; the gate opens once `expected` are inside and the worker wants no more."""
    found: list[menzil.Tally] = []
    worker = threading.Thread(target=lambda: found.append(app.run(once=True)), daemon=True)
    worker.start()
    until(lambda: gate.inside >= expected, f"{expected} inside")
    # Whatever the worker has leased is in a slot by now, or waits for one.
    leased = "select coalesce(sum(coalesce(cardinality(ids), hi_id - lo_id + 1)), 0) from menzil.lease"
    until(lambda: crew.ask(leased) >= expected)
    gate.open.set()
    worker.join(30)
    (tally,) = found
    assert tally.delivered == total
    return tally


@pytest.mark.parametrize(
    ("worker", "handler", "expected"),
    [
        ({}, {}, 10),
        ({"concurrency": 4}, {}, 4),
        ({"threads": 15}, {}, 15),
        ({}, {"lease": 60}, 10),
        ({}, {"concurrency": 25}, 25),
    ],
)
def test_a_plain_function_gets_ten_threads_unless_it_says_otherwise(
    crew: Crew, db: str, worker: dict[str, Any], handler: dict[str, Any], expected: int
) -> None:
    app, gate = menzil.Worker(db, endpoints=False, janitors=False, **worker), Gate()
    app.handler("work", **handler)(gate.pass_through)
    crew.send("work", *map(str, range(40)))
    run(crew, app, gate, expected, 40)
    assert gate.most == expected


def test_functions_of_several_channels_share_the_ten_threads(crew: Crew, db: str) -> None:
    app, gate, seen = menzil.Worker(db, endpoints=False, janitors=False), Gate(), Counter[str]()

    @app.handler("a")
    @app.handler("b")
    def work(message: menzil.Message) -> None:
        seen[message.channel] += 1
        gate.pass_through(message)

    for channel in ("a", "b"):
        crew.send(channel, *map(str, range(20)))
    run(crew, app, gate, 10, 40)
    assert gate.most == 10
    assert seen == {"a": 20, "b": 20}


def test_an_async_handler_does_not_wait_for_threads(crew: Crew, db: str) -> None:
    app, gate = menzil.Worker(db, endpoints=False, janitors=False), Gate()
    app.handler("work")(gate.pass_through)

    @app.handler("quick")
    async def quick(message: menzil.Message) -> None:
        done.append(message.id)

    done: list[int] = []
    crew.send("work", *map(str, range(30)))
    ids = crew.send("quick", *map(str, range(30)))
    worker = threading.Thread(target=lambda: app.run(once=True), daemon=True)
    worker.start()
    until(lambda: gate.inside == 10 and len(done) == 30)
    assert not gate.open.is_set()
    gate.open.set()
    worker.join(30)
    assert sorted(done) == sorted(ids)
