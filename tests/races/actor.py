"""Somebody who takes part in a race: one connection, and menzil's functions by their names."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb

LOCK_TIMEOUT = "20s"
LEASE = 600_000
DEADLINE = 60.0


@dataclass(frozen=True)
class Lease:
    """What a dequeue gave: the message, and the attempt that proves it is ours."""

    id: int
    channel: str
    attempt: int
    key: str | None


class Actor:
    """Autocommits until `begin`."""

    def __init__(self, conn: psycopg.Connection, patient: bool) -> None:
        self.conn = conn
        self.pid = self.conn.info.backend_pid
        self.run("set statement_timeout = '60s'")
        self.run(f"set lock_timeout = '{0 if patient else LOCK_TIMEOUT}'")

    def run(self, text: str, *params: object) -> list[Any]:
        cursor = self.conn.execute(text, params or None)
        return cursor.fetchall() if cursor.description else []

    def one(self, text: str, *params: object) -> Any:
        return self.run(text, *params)[0][0]

    def begin(self, isolation: str = "read committed") -> None:
        self.run(f"begin isolation level {isolation}")

    def commit(self) -> None:
        self.run("commit")

    def rollback(self) -> None:
        self.run("rollback")

    @contextmanager
    def open(self, isolation: str = "read committed") -> Iterator[None]:
        """A transaction that stays open for the length of the block and then commits, unless the block ended it."""
        self.begin(isolation)
        yield
        if self.conn.info.transaction_status is not TransactionStatus.IDLE:
            self.commit()

    def channel(self, name: str, **limits: object) -> None:
        self._call("channel_set", name, **limits)

    def send(self, channel: str, payload: object = 0, **options: object) -> int:
        return self._call("send_with_options", channel, Jsonb(payload), **options)

    def send_batch(self, channel: str, count: int) -> list[int]:
        return self.one("select menzil.send_batch(%s, %s::jsonb[])", channel, [Jsonb(n) for n in range(count)])

    def send_many(self, *messages: Mapping[str, object]) -> list[int]:
        sent = [{"payload": 0, **message} for message in messages]
        return self.one("select menzil.send_many(%s::jsonb)", Jsonb(sent))

    def dequeue(self, limit: int = 1, *channels: str, lease: int = LEASE) -> list[Lease]:
        rows = self.run(
            "select id, channel, num_attempts, ordering_key from menzil.message_dequeue(%s, %s, %s)",
            *(lease, limit, list(channels) or None),
        )
        return [Lease(*row) for row in rows]

    def take(self, count: int = 1, *channels: str, lease: int = LEASE) -> list[Lease]:
        """Dequeues until it has so many: one empty answer does not mean that nothing will come."""
        taken: list[Lease] = []
        deadline = time.monotonic() + DEADLINE
        while len(taken) < count:
            assert time.monotonic() < deadline, f"only {len(taken)} of {count} messages came: {taken}"
            taken += self.dequeue(count - len(taken), *channels, lease=lease)
        return taken

    def complete(self, leases: Sequence[Lease]) -> list[str]:
        return self._settle("message_complete(%s::bigint[], %s::bigint[])", leases)

    def defer(self, leases: Sequence[Lease]) -> list[str]:
        return self._settle("message_defer(%s::bigint[], %s::bigint[])", leases)

    def heartbeat(self, leases: Sequence[Lease], lease: int = LEASE) -> list[str]:
        return self._settle("message_heartbeat(%s::bigint[], %s::bigint[], %s)", leases, lease)

    def fail(self, leases: Sequence[Lease], error: str = "[RETRYABLE] boom", wait: str | None = None) -> list[str]:
        waits = None if wait is None else [wait] * len(leases)
        return self._settle(
            "message_fail(%s::bigint[], %s::bigint[], %s, %s::interval[])", leases, [error] * len(leases), waits
        )

    def status(self, message: int) -> str:
        return self.one("select status from menzil.message_status(%s)", message)

    def cancel(self, message: int) -> bool:
        return self._call("message_cancel", message)

    def recover(self) -> int:
        return self._call("recover_stale_messages")

    def _settle(self, call: str, leases: Sequence[Lease], *more: object) -> list[str]:
        tokens = [lease.id for lease in leases], [lease.attempt for lease in leases]
        outcomes = dict(self.run(f"select id, outcome from menzil.{call}", *tokens, *more))
        return [outcomes[lease.id] for lease in leases]

    def _call(self, name: str, *given: object, **named: object) -> Any:
        words = ["%s"] * len(given) + [f"p_{word} => %s" for word in named]
        return self.one(f"select menzil.{name}({', '.join(words)})", *given, *named.values())
