"""What a run does, all of it decided by one seed: channels, what senders send, which faults strike when.

Nothing here depends on what happens in the run: operation 17 of sender 2 is the same whoever was killed before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

RAW, HANDLER, BOTH, ENDPOINT, BROKER = "raw", "handler", "both", "endpoint", "broker"

#: The least time between two faults that make the whole server restart; its supervisor takes faster deaths for failure.
RECOVERY = 7.0


#: Where large batches go and are taken in small steps: more is there than a call leases.
DEEP = "deep"
#: Operations of a sender from one season to the next: in every other season nothing is cancelled.
SEASON = 40


@dataclass(frozen=True)
class Channel:
    """A channel of the run: who serves it, its limits, how many retries a message has, its share of the sends."""

    serves: str
    weight: int
    max_retries: int = 30
    max_concurrency: int | None = None
    release_interval_ms: int = 0
    release_count: int = 1


CHANNELS: dict[str, Channel] = {
    "plain": Channel(RAW, 20),
    "three": Channel(RAW, 4, max_concurrency=3),
    "paced": Channel(RAW, 6, release_interval_ms=200, release_count=25),
    "short": Channel(RAW, 4, max_retries=2),
    "deep": Channel(RAW, 2),
    "shared": Channel(BOTH, 10),
    "work": Channel(HANDLER, 20),
    "four": Channel(HANDLER, 4, max_concurrency=4),
    "rated": Channel(HANDLER, 6, release_interval_ms=100, release_count=12),
    "booked": Channel(HANDLER, 6),
    "brief": Channel(HANDLER, 4, max_retries=2),
    "hook": Channel(ENDPOINT, 10),
    "hook_six": Channel(ENDPOINT, 4, max_concurrency=6),
    "hook_rated": Channel(ENDPOINT, 4, release_interval_ms=200, release_count=20),
    "hook_brief": Channel(ENDPOINT, 4, max_retries=3),
    "nats": Channel(BROKER, 6),
    "valkey": Channel(BROKER, 4),
    "valkey_once": Channel(BROKER, 4),
}

#: Faults and how often each comes up.
FAULTS: dict[str, int] = {
    "kill_worker": 5,
    "kill_consumer": 5,
    "kill_reader": 1,
    "kill_backend": 2,
    "kill_postmaster": 2,
    "terminate": 6,
    "cancel": 4,
    "stop_worker": 3,
    "stop_consumer": 3,
    "cut": 6,
    "stall": 4,
    "delay": 3,
    "cut_commit": 8,
    "lose_commit": 3,
    "receiver": 8,
    "kill_broker": 3,
    "freeze_broker": 2,
    "swallow_broker": 3,
    "reset_broker": 3,
    "disk": 1,
    "clock": 2,
    "stranger": 5,
    "locks": 4,
    "isolation": 3,
    "month": 2,
    "dump": 1,
}
RESTARTS = ("kill_backend", "kill_postmaster", "disk")
BROKER_FAULTS = ("kill_broker", "freeze_broker", "swallow_broker", "reset_broker")
MOODS = ("hang", "garbage", "drip", "reset", "huge", "bomb", "500", "503", "429", "half")


@dataclass(frozen=True)
class Item:
    """One message to send. `ref` is in its payload and in no other, a deliberate repeat of an idempotency key apart."""

    ref: str
    channel: str
    key: str | None = None
    idem: str | None = None
    scheduled_ms: int | None = None
    expires_ms: int | None = None
    priority: int = 0


@dataclass(frozen=True)
class Op:
    """What a sender does next: how it sends which messages, and what it does before it commits."""

    number: int
    way: str  # single, batch, many
    by: str  # client, sql
    own: bool  # in a transaction of the sender's own, or committed by the call itself
    items: tuple[Item, ...]
    rollback: bool = False
    wait_ms: int = 0  # between the last send and the commit
    cancel: float | None = None  # which of the latest messages to cancel afterwards, 0 to 1
    cancel_ms: int = 0  # between the cancel and its commit
    cancel_undone: bool = False  # the cancel is rolled back


@dataclass(frozen=True)
class Fault:
    """What strikes, when (seconds from the start), and the dice for its particulars."""

    n: int
    at: float
    what: str
    dice: str


@dataclass(frozen=True)
class Plan:
    """One run. `kinds` are the faults to choose from; all that this machine permits unless given."""

    seed: int
    sends: int = 5000
    faults: int = 40
    mutant: str | None = None
    kinds: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    gap: float = 0.75
    senders: int = 4
    consumers: int = 3
    workers: int = 3
    worker_lease: float = 2.0
    drain_seconds: float = 90.0
    turns: bool = True  # a month ends in the middle of the run, by the clock of the server
    channels: dict[str, Channel] = field(default_factory=lambda: dict(CHANNELS))
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long faults strike and senders send."""
        return max(self.faults * self.gap, self.sends / 400, 3.0)

    @property
    def has_brokers(self) -> bool:
        """Whether a channel goes to a broker."""
        return any(channel.serves == BROKER for channel in self.channels.values())

    def quota(self, sender: int) -> int:
        """How many acknowledged messages this sender has to reach."""
        return self.sends // self.senders + (sender < self.sends % self.senders)

    @cached_property
    def schedule(self) -> tuple[Fault, ...]:
        """The faults in order of time, spread evenly with some chance."""
        dice = Random(f"{self.seed}/faults")
        without = self.without if self.has_brokers else (*self.without, *BROKER_FAULTS)
        weights = {w: n for w, n in FAULTS.items() if (not self.kinds or w in self.kinds) and w not in without}
        cheap = {w: n for w, n in weights.items() if w not in RESTARTS} or weights
        found, restarted = [], -RECOVERY
        for n in range(self.faults):
            at = (n + 0.2 + 0.6 * dice.random()) * self.seconds / max(self.faults, 1)
            choices = weights if at - restarted >= RECOVERY else cheap
            what = dice.choices(list(choices), list(choices.values()))[0]
            if what in RESTARTS:
                restarted = at
            found.append(Fault(n, at, what, f"{self.seed}/fault/{n}"))
        return tuple(found)

    def op(self, sender: int, number: int) -> Op:
        """The operation of this sender with this number."""
        op = self._base(sender, number)
        dice = Random(f"{self.seed}/repeat/{sender}/{number}")
        if dice.random() < self.options.get("repeats", 0.12):
            # A short way back its message is still live, a long way back it has ended.
            before = self._base(sender, max(0, number - dice.choice([1, 2, 5, 40, 120])))
            keyed = [item for item in before.items if item.idem]
            if keyed and before.number != number:
                again = dice.choice(keyed)
                if dice.random() < 0.15:  # the same key for something else
                    again = Item(f"{op.items[0].ref}x", again.channel, idem=again.idem)
                return Op(number, "single", op.by, op.own, (again,), op.rollback, op.wait_ms)
        return op

    def _base(self, sender: int, number: int) -> Op:
        dice = Random(f"{self.seed}/op/{sender}/{number}")
        way = dice.choices(["single", "batch", "many"], [5, 2, 3])[0]
        own = dice.random() < 0.75
        # Now and then a batch that is more than consumers take at once: the front of its lane stays for a while.
        batch = dice.randint(100, 250) if dice.random() < self.options.get("big_batches", 0.08) else dice.randint(2, 30)
        count = {"single": dice.randint(1, 4) if own else 1, "batch": batch, "many": dice.randint(2, 15)}
        one = self._channel(dice) if way == "batch" else None  # a batch has one channel and no options
        one = DEEP if one and batch >= 100 and DEEP in self.channels else one
        items = tuple(self._item(dice, f"s{sender}.{number}.{i}", one) for i in range(count[way]))
        hurried = dice.random() < self.options.get("hurried", 0.7)
        wait = 0 if hurried else dice.randint(1, 60) if dice.random() < 0.95 else dice.randint(500, 1500)
        # In seasons: after a cancel consumers look out for a while, and without one they go a shorter way.
        season = 0.2 if number // SEASON % 2 == 0 else 0.0
        cancel = dice.random() if dice.random() < self.options.get("cancels", season) else None
        by = dice.choice(["client", "sql"])
        rollback = own and dice.random() < 0.1
        slowly = dice.random() < self.options.get("slow_cancels", 0.4)
        hold = dice.randint(20, 300) if slowly else 0
        undone = slowly and dice.random() < 0.3
        return Op(number, way, by, own, items, rollback, wait if own else 0, cancel, hold, undone)

    def _channel(self, dice: Random) -> str:
        return dice.choices(list(self.channels), [channel.weight for channel in self.channels.values()])[0]

    def _item(self, dice: Random, ref: str, channel: str | None) -> Item:
        if channel is not None:
            return Item(ref, channel)
        channel = self._channel(dice)
        # Hundreds of keys: one at a time each, and a key whose first message fails for long must not hold up the run.
        key = f"k{dice.randint(1, 60)}" if dice.random() < 0.3 else None
        idem = f"i-{ref}" if dice.random() < 0.25 else None
        scheduled = dice.choice([50, 300, 1500, 4000]) if dice.random() < 0.12 else None
        expires = (scheduled or 0) + dice.choice([200, 1000, 5000, 60_000]) if dice.random() < 0.08 else None
        priority = dice.choice([0, 0, 0, 1, 5, 10])
        return Item(ref, channel, key, idem, scheduled, expires, priority)
