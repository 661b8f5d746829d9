"""The queue on paper: what the documents say happens, in plain Python, without a database.

Time is (hour, order of events inside the hour). What the documents leave open is open here too: an expired message ends
when somebody meets it, and which channel's turn it is among equals is judged, not predicted.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace

Time = tuple[int, int]
RETENTION = 24


@dataclass
class Channel:
    name: str
    max_concurrency: int | None = None
    max_size: int | None = None
    release_hours: int = 0
    release_count: int = 1
    on_dead: str = "continue"
    paused: bool = False
    released: bool = False
    policy: dict[str, object] = field(default_factory=dict)
    releases: list[Time] = field(default_factory=list)
    changed: int = 0  # the dequeue before which a limit, or the pause, was last changed

    def is_limited(self) -> bool:
        return self.paused or self.max_concurrency is not None or self.release_hours > 0


@dataclass
class Message:
    id: int
    channel: str
    due: Time  # when it may be leased
    place: Time = (0, 0)  # its position among those that may be leased
    priority: int = 0
    payload: object = None
    content: bytes | None = None
    ordering_key: str | None = None
    idempotency_key: str | None = None
    scheduled: int | None = None
    expires: int | None = None
    attempts: int = 0
    retry_count: int = 0
    last_error: str | None = None
    state: bytes | None = None
    status: str = "pending"
    unlock: Time | None = None
    batch: int = 0  # messages of one batch and attempt number share a lease
    holds_key: bool = False  # was leased and waits again: its ordering key stays blocked
    since: int = -1  # the dequeue at whose start it was first seen to be ready, for the order of turns


@dataclass(frozen=True)
class Dead:
    channel: str
    ordering_key: str | None
    blocks: bool


class Queue:
    """Everything there is. `copy` makes the group that may be rolled back."""

    def __init__(self) -> None:
        self.hour, self.order, self.calls = 0, 1, 0
        self.channels: dict[str, Channel] = {}
        self.live: dict[int, Message] = {}
        self.ended: dict[int, Message] = {}
        self.dead: dict[int, Dead] = {}
        self.used: dict[tuple[str, str], tuple[int, object, Time]] = {}
        self.heads: dict[tuple[str, str], int] = {}
        self.served: dict[tuple[str, int], int] = {}
        self.waiting: dict[tuple[str, int], int] = {}
        self.news: set[int] = set()  # ids that ended since the last comparison
        self.postponed: set[int] = set()  # ids that were looked at in this hour when they had expired in flight

    def copy(self) -> Queue:
        return copy.deepcopy(self)

    # Time

    def now(self) -> Time:
        return (self.hour, self.order)

    def tick(self) -> Time:
        self.order += 1
        return self.now()

    def later(self, hours: int) -> Time:
        return (self.hour + hours, self.order)

    # Sending

    def holder(self, channel: str, key: str | None) -> tuple[int, object] | None:
        """Who has this idempotency key: a live message, or one that was completed within the retention.

        A message that expired and waits has it no more, whether or not a dequeue has ended it.
        """
        if key is None:
            return None
        for message in self.live.values():
            if (message.channel, message.idempotency_key) != (channel, key):
                continue
            if message.status == "processing" or not self.expired(message):
                return message.id, message.payload
        used = self.used.get((channel, key))
        return used[:2] if used and used[2] > self.now() else None

    def room(self, channel: str) -> int:
        limit = self.channels[channel].max_size
        return 10**9 if limit is None else limit - sum(m.channel == channel for m in self.live.values())

    def add(self, message: Message) -> None:
        self.live[message.id] = message

    # Ending and waiting again

    def end(self, message: Message, status: str) -> None:
        del self.live[message.id]
        self.ended[message.id] = replace(message, status=status, unlock=None)
        self.news.add(message.id)
        self.heads = {key: head for key, head in self.heads.items() if head != message.id}
        name = (message.channel, message.idempotency_key or "")
        # An expired message may end after the one that took its key.
        if self.used.get(name, (message.id,))[0] <= message.id:
            self.used.pop(name, None)
        if message.idempotency_key is not None and status == "completed":
            until = (self.hour + RETENTION, self.order)
            self.used[name] = (message.id, message.payload, until)

    def wait_again(self, message: Message, due: Time, place: Time | None = None) -> None:
        """Until `due`; at the position that it had, or at a new one."""
        message.status, message.unlock, message.due, message.since = "pending", None, due, -1
        message.place = message.place if place is None else place
        message.holds_key = message.ordering_key is not None

    def fail(self, message: Message, error: str, wait: int | None) -> str:
        """A failure of whoever holds the lease; `wait` hours until the retry, or by the channel's policy."""
        channel = self.channels[message.channel]
        permanent = error.startswith("[PERMANENT]")
        message.last_error = error
        if permanent or message.retry_count >= int(str(channel.policy["max_retries"])):
            blocks = channel.on_dead == "block" and message.ordering_key is not None
            self.dead[message.id] = Dead(message.channel, message.ordering_key, blocks)
            self.end(message, "failed")
            return "dead"
        hours = retry_hours(channel.policy, message.retry_count) if wait is None else min(wait, 24)
        message.retry_count += 1
        self.wait_again(message, self.later(hours))
        return "retry"

    def keep(self, message: Message, hours: int) -> None:
        """A heartbeat keeps the whole lease: also messages of it that were not named."""
        for other in self.live.values():
            if (other.batch, other.attempts) == (message.batch, message.attempts) and other.unlock is not None:
                other.unlock = max(other.unlock, self.later(hours))

    def recover(self) -> int:
        """Leases that ran out: a failure, and due at once, at the position they had."""
        lost = [m for m in self.live.values() if m.unlock is not None and m.unlock <= self.now()]
        for message in lost:
            self.fail(message, "lost", 0)
        return len(lost)

    def expired(self, message: Message) -> bool:
        return message.expires is not None and message.expires <= self.hour

    def outcome(self, number: int, attempt: int) -> str:
        """What a settle with this token finds."""
        message = self.live.get(number)
        if message is None or message.attempts == 0:
            return "unknown"
        if message.status == "processing":
            return "settled" if message.attempts == attempt else "stale"
        return "stale" if 1 <= attempt <= message.attempts else "unknown"

    # Who may be leased

    def in_flight(self, channel: str) -> int:
        return sum(m.channel == channel and m.status == "processing" for m in self.live.values())

    def gate(self, channel: Channel) -> int:
        """How many this channel may still give now."""
        if channel.paused:
            return 0
        room = 10**9
        if channel.max_concurrency is not None:
            room = channel.max_concurrency - self.in_flight(channel.name)
        if channel.release_hours:
            hour, order = self.now()
            recent = sum((at[0] + channel.release_hours, at[1]) > (hour, order) for at in channel.releases)
            room = min(room, channel.release_count - recent)
        return max(room, 0)

    def joined(self, channel: str, key: str) -> list[Message]:
        """Messages of an ordering key whose time has come, by id."""
        found = [m for m in self.live.values() if (m.channel, m.ordering_key) == (channel, key)]
        return sorted((m for m in found if m.holds_key or m.due <= self.now()), key=lambda m: m.id)

    def key_is_blocked(self, channel: str, key: str) -> bool:
        if any(d.blocks and (d.channel, d.ordering_key) == (channel, key) for d in self.dead.values()):
            return True
        return any(m.status == "processing" or (m.holds_key and not self.expired(m)) for m in self.joined(channel, key))

    def choose_heads(self) -> None:
        """What every look at the queue does: a free key has its first message chosen, and keeps that choice."""
        for message in self.live.values():
            key = (message.channel, message.ordering_key)
            if message.ordering_key is None or key in self.heads or self.key_is_blocked(*key):
                continue
            waiting = self.joined(*key)
            if waiting:
                self.heads[key] = waiting[0].id

    def may_be_leased(self, message: Message) -> bool:
        """Whether the documents allow it now, limits aside."""
        if message.status != "pending" or message.due > self.now() or self.expired(message):
            return False
        if message.ordering_key is None or message.holds_key:
            return True
        if self.key_is_blocked(message.channel, message.ordering_key):
            return False
        if self.heads.get((message.channel, message.ordering_key)) == message.id:
            return True
        before = [m for m in self.joined(message.channel, message.ordering_key) if m.id < message.id]
        return all(self.expired(m) for m in before)

    def must_be_leased(self, message: Message) -> bool:
        """Whether nothing that the documents leave open stands before it."""
        if not self.may_be_leased(message):
            return False
        if message.ordering_key is None or message.holds_key:
            return True
        rivals = self.joined(message.channel, message.ordering_key)
        return not any(self.expired(m) for m in rivals) and sum(self.may_be_leased(m) for m in rivals) == 1


def retry_hours(policy: dict[str, object], retry_count: int) -> int:
    """The delay before a retry, by the formula of its backoff; policies of these tests have whole hours."""
    base, most = int(str(policy["base_delay_seconds"])) // 3600, int(str(policy["max_delay_seconds"])) // 3600
    if policy["backoff"] == "exponential":
        return min(base * 2**retry_count, most)
    if policy["backoff"] == "linear":
        return min(base + retry_count * (int(str(policy["increment_seconds"])) // 3600), most)
    return min(base, most)
