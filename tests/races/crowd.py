"""Senders, consumers and operators who do everything at once for some seconds. One seed decides what they do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage

CHANNELS: dict[str, dict[str, int]] = {
    "free": {},
    "one": {"max_concurrency": 1},
    "three": {"max_concurrency": 3},
    "rated": {"release_interval_ms": 50, "release_count": 20},
    "both": {"max_concurrency": 2, "release_interval_ms": 40, "release_count": 15},
    "moody": {},
}
SHORT = 300


@dataclass
class Ledger:
    """What was promised to whom. A list append is atomic, so threads share it."""

    sent: list[tuple[int, str, str | None, float, float]] = field(
        default_factory=list
    )  # id, channel, key, begun, committed
    undone: list[int] = field(default_factory=list)
    settled: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Crowd:
    def __init__(self, stage: Stage, seed: int) -> None:
        self.stage, self.seed, self.ledger = stage, seed, Ledger()
        self.sending, self.working = threading.Event(), threading.Event()
        for name, limits in CHANNELS.items():
            stage.watcher.channel(name, **limits)
        stage.watcher.run("select menzil.set_setting('default_max_retries', '1000')")

    def act(self, seconds: float, senders: int, consumers: int) -> None:
        self.sending_ends_at = time.monotonic() + seconds
        self.sending.set()
        self.working.set()
        early = [self._hire(self._send, n) for n in range(senders)] + [self._hire(self._operate, 100)]
        late = [self._hire(self._consume, 200 + n) for n in range(consumers)] + [self._hire(self._tidy, 300)]
        for future in early:
            future.result(timeout=seconds + 60)
        # The channel that gives one at a time takes its time for what came in meanwhile.
        deadline = time.monotonic() + 60 + 10 * seconds
        while self.stage.live() > 0 and time.monotonic() < deadline and not self.ledger.errors:
            time.sleep(0.02)  # the count costs consumers a processor
        self.working.clear()
        for future in late:
            future.result(timeout=60)

    def _hire(self, act: Callable[[Actor, Random], None], number: int) -> Any:
        actor, dice = self.stage.hire(patient=True), Random(f"{self.seed}/{number}")

        def run() -> None:
            try:
                act(actor, dice)
            except Exception as error:
                self.ledger.errors.append(f"{act.__name__}: {error!r}")
                self.sending.clear()
                raise

        return self.stage.start(run)

    def _send(self, actor: Actor, dice: Random) -> None:
        while self.sending.is_set() and time.monotonic() < self.sending_ends_at:
            begun = time.monotonic()
            mine: list[tuple[int, str, str | None]] = []
            actor.begin()
            for _ in range(dice.randint(1, 5)):
                channel = dice.choice(list(CHANNELS))
                key = f"k{dice.randint(1, 4)}" if dice.random() < 0.4 else None
                if dice.random() < 0.2:
                    mine += [(number, channel, None) for number in actor.send_batch(channel, dice.randint(1, 6))]
                    continue
                mine.append((self._send_one(actor, dice, channel, key), channel, key))
            taken = (
                actor.dequeue(dice.choice([1, 4]), *dice.choice([[], ["free", "one"]])) if dice.random() < 0.1 else []
            )
            actor.complete(taken)
            if dice.random() < 0.2:
                actor.run("select pg_sleep(%s)", dice.random() * (0.1 if dice.random() < 0.9 else 1))
            if dice.random() < 0.15:
                actor.rollback()
                self.ledger.undone += [number for number, _, _ in mine]
            else:
                actor.commit()
                done = time.monotonic()
                self.ledger.sent += [(*sent, begun, done) for sent in mine]
                self.ledger.settled += [lease.id for lease in taken]

    def _send_one(self, actor: Actor, dice: Random, channel: str, key: str | None) -> int:
        return actor.one(
            "select menzil.send_with_options(%s, '0', %s, clock_timestamp() + %s::float8 * interval '1 ms',"
            " p_ordering_key => %s,"
            " p_expires_at => clock_timestamp() + %s::float8 * interval '1 ms')",
            channel,
            dice.choice([0, 0, 0, 5, 10]),
            dice.randint(1, 200) if dice.random() < 0.15 else None,
            key,
            dice.choice([300, 1000, 60_000]) if dice.random() < 0.1 else None,
        )

    def _consume(self, actor: Actor, dice: Random) -> None:
        zombies: list[Lease] = []
        while self.working.is_set():
            names = dice.sample(list(CHANNELS), 3) if dice.random() < 0.3 else []
            leases = actor.dequeue(dice.choice([1, 3, 10]), *names, lease=SHORT)
            draining = time.monotonic() > self.sending_ends_at
            chance = 1.0 if draining else dice.random()
            if chance < 0.05:
                zombies += leases
                continue
            if chance < 0.15:
                actor.heartbeat(leases, lease=SHORT)
            if chance < 0.10:
                actor.run("select pg_sleep(%s)", dice.random() * 0.05)
            if 0.15 <= chance < 0.25:
                actor.fail(leases, wait=f"{dice.randint(0, 100)} ms")
            elif 0.25 <= chance < 0.32:
                actor.defer(leases)
            else:
                self._complete(actor, leases)
            if zombies and chance < 0.1:
                self._complete(actor, [zombies.pop()])

    def _complete(self, actor: Actor, leases: list[Lease]) -> None:
        outcomes = actor.complete(leases)
        self.ledger.settled += [lease.id for lease, what in zip(leases, outcomes, strict=True) if what == "settled"]

    def _operate(self, actor: Actor, dice: Random) -> None:
        """Changes limits, pauses, cancels, and sometimes thinks better of it."""
        while self.sending.is_set() and time.monotonic() < self.sending_ends_at:
            actor.begin()
            victims = [row[0] for row in actor.run("select id from menzil.queue order by random() limit 3")]
            victims = [message for message in victims if actor.cancel(message)] if dice.random() < 0.3 else []
            if dice.random() < 0.2:
                actor.channel("moody", max_concurrency=dice.choice([None, 1, 2, 7]))
            if dice.random() < 0.2:
                actor.run(f"select menzil.channel_{dice.choice(['pause', 'resume'])}('moody')")
            actor.run("select pg_sleep(%s)", dice.random() * 0.05)
            if dice.random() < 0.3:
                actor.rollback()
            else:
                actor.commit()
                self.ledger.cancelled += victims
        actor.run("select menzil.channel_resume('moody')")

    def _tidy(self, actor: Actor, dice: Random) -> None:
        while self.working.is_set():
            actor.run("select menzil.maintain()")
            actor.run("select pg_sleep(%s)", dice.random() * 0.2)
