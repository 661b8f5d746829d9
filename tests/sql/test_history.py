"""Random days of a queue: whatever people do, every committed message ends once, in order, within the limits."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from tests.sql.clock import pass_time, until
from tests.sql.queue import Queue

CHANNELS = {
    "free": {},
    "narrow": {"p_max_concurrency": 3},
    "rated": {"p_release_interval_ms": 20_000, "p_release_count": 4},
}
NARROW = "select count(*) from menzil.queue where channel = 'narrow' and status = 'processing'"
# The forms on arrays: a lease that is lost by now is an outcome, not an error.
SETTLES = [
    *["message_complete({ids}, {attempts})"] * 5,
    "message_defer({ids}, {attempts})",
    "message_defer({ids}, {attempts}, array[now() + interval '9 seconds'])",
    "message_fail({ids}, {attempts}, array['no'])",
    "message_fail({ids}, {attempts}, array['[PERMANENT] no'])",
    None,
]


class Day:
    """One sender with an open transaction, consumers that settle, fail, defer, die or forget, and an operator."""

    def __init__(self, queue: Queue, sender: Queue, seed: int) -> None:
        self.queue, self.sender, self.chance = queue, sender, random.Random(seed)
        self.open: list[tuple[int, str, str | None]] = []
        self.keys: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.sent: set[int] = set()
        self.held: list[Any] = []
        self.first_served: list[int] = []

    def send(self) -> None:
        channel = self.chance.choice(list(CHANNELS))
        key = self.chance.choice([None, None, "a", "b"])
        options: dict[str, Any] = {"priority": self.chance.choice([0, 0, 5, 10])}
        if key:
            options["ordering_key"] = key
        elif self.chance.random() < 0.2:
            options["scheduled_at"] = self.queue.one("select now() + interval '15 seconds'")
        self.open.append((self.sender.send(channel, **options), channel, key))

    def send_batch(self) -> None:
        channel = self.chance.choice(list(CHANNELS))
        sent = self.sender.send_batch(channel, self.chance.randint(1, 8))
        self.open += [(message, channel, None) for message in sent]

    def commit(self) -> None:
        self.sender.conn.commit()
        for message, channel, key in self.open:
            self.sent.add(message)
            if key:
                self.keys[channel, key].append(message)
        self.open = []

    def roll_back(self) -> None:
        self.sender.conn.rollback()
        self.open = []

    def dequeue(self) -> None:
        taken = self.queue.dequeue(self.chance.choice([1, 3, 10]))
        self.first_served += [message.id for message in taken if message.num_attempts == 1]
        self.held += taken
        assert self.queue.one(NARROW) <= 3

    def settle(self) -> None:
        self.chance.shuffle(self.held)
        for message in self.held[: self.chance.randint(1, 4)]:
            self.held.remove(message)
            call = self.chance.choice(SETTLES)
            if call:  # otherwise the worker has died with the message in its hands
                given = call.format(ids=f"array[{message.id}]", attempts=f"array[{message.num_attempts}]")
                ((_, outcome),) = self.queue.all(f"select * from menzil.{given}")
                assert outcome in ("settled", "retry", "dead", "stale", "unknown")

    def cancel(self) -> None:
        waiting = self.queue.waiting()
        if waiting:
            self.queue.call("message_cancel", self.chance.choice(waiting))

    def wait(self) -> None:
        pass_time(self.queue.conn, self.chance.choice([1, 10, 40, 70]))

    def pause(self) -> None:
        self.queue.call(self.chance.choice(["channel_pause", "channel_resume"]), self.chance.choice(list(CHANNELS)))

    def run(self, steps: int) -> None:
        weights = {
            self.send: 12,
            self.send_batch: 3,
            self.commit: 5,
            self.roll_back: 1,
            self.dequeue: 8,
            self.settle: 8,
            self.cancel: 1,
            self.pause: 1,
            self.wait: 1,
        }
        for act in self.chance.choices(list(weights), list(weights.values()), k=steps):
            # What is sent and not yet committed must not travel in time: nobody else can see it.
            if act == self.wait and self.open:
                self.commit()
            act()
        self.commit()

    def drain(self) -> None:
        for channel in CHANNELS:
            self.queue.call("channel_resume", channel)

        def empty() -> bool:
            taken = self.queue.dequeue(50)
            self.first_served.extend(message.id for message in taken if message.num_attempts == 1)
            self.queue.complete(*taken)
            pass_time(self.queue.conn, 30)
            return self.queue.one("select count(*) from menzil.queue") == 0

        until(empty)


@pytest.mark.parametrize("seed", range(6))
def test_every_committed_message_ends_once_and_in_order(queue: Queue, connect, seed: int) -> None:
    for name, limits in CHANNELS.items():
        queue.call("channel_set", name, **limits)
    day = Day(queue, Queue(connect(autocommit=False)), seed)
    day.run(150)
    day.drain()
    ended = [row.id for row in queue.all("select id from menzil.archive")]
    assert sorted(ended) == sorted(day.sent)
    for key, messages in day.keys.items():
        served = [message for message in day.first_served if message in messages]
        assert served == sorted(served), (seed, key)
    queue.call("maintain")
    assert queue.one("select max(in_flight) from menzil.gate") == 0
    tables = ("run", "line", "aside", "scheduled", "key_queue", "lease", "queue")
    assert {table: queue.one(f"select count(*) from menzil.{table}") for table in tables} == dict.fromkeys(tables, 0)
