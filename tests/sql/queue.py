"""The public functions as a test types them: names, parameters and results are those of the SQL, nothing is added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

LEASE_MS = 60_000


def _sql(value: Any) -> Any:
    return Jsonb(value) if isinstance(value, dict) else value


class Queue:
    def __init__(self, conn: psycopg.Connection) -> None:
        self.conn = conn

    def one(self, query: str, *params: Any) -> Any:
        """Return the only row, or its only column."""
        (row,) = self.all(query, *params)
        return row[0] if len(row) == 1 else row

    def all(self, query: str, *params: Any) -> list[Any]:
        with self.conn.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query, params or None).fetchall()

    def call(self, function: str, *params: Any, **named: Any) -> Any:
        """Return what the function returns, called with these arguments."""
        given = ["%s"] * len(params) + [f"{name} := %s" for name in named]
        values = [_sql(value) for value in (*params, *named.values())]
        return self.one(f"select menzil.{function}({', '.join(given)})", *values)

    def rows(self, function: str, *params: Any, **named: Any) -> list[Any]:
        given = ["%s"] * len(params) + [f"{name} := %s" for name in named]
        values = [_sql(value) for value in (*params, *named.values())]
        return self.all(f"select * from menzil.{function}({', '.join(given)})", *values)

    def send(self, channel: str = "work", payload: Any = None, **options: Any) -> int:
        """Send with options given without their p_."""
        named = {f"p_{name}": value for name, value in options.items()}
        return self.call("send_with_options", channel, Jsonb({} if payload is None else payload), **named)

    def send_batch(self, channel: str, count: int) -> list[int]:
        return self.call("send_batch", channel, [Jsonb({"n": n}) for n in range(count)])

    def dequeue(
        self, limit: int = 1, channels: Sequence[str] | None = None, lock_ms: int = LEASE_MS, worker: str | None = None
    ) -> list[Any]:
        return self.rows("message_dequeue", lock_ms, limit, channels, worker)

    def lease(self, channels: Sequence[str] | None = None, lock_ms: int = LEASE_MS) -> Any:
        """Dequeue the one message that must be there."""
        (message,) = self.dequeue(1, channels, lock_ms)
        return message

    def complete(self, *messages: Any) -> dict[int, str]:
        return self._settle("message_complete", messages)

    def defer(self, message: Any, at: Any = None, state: bytes | None = None) -> None:
        self.call("message_defer", message.id, message.num_attempts, at, state)

    def fail(self, message: Any, error: str = "[RETRYABLE] It did not work.", retry_after: str | None = None) -> str:
        return self.one(
            "select menzil.message_fail(%s, %s, %s, %s::interval)", message.id, message.num_attempts, error, retry_after
        )

    def heartbeat(self, message: Any, lock_ms: int = LEASE_MS) -> None:
        self.call("message_heartbeat", message.id, message.num_attempts, lock_ms)

    def status(self, message: int) -> Any:
        (row,) = self.rows("message_status", message)
        return row

    def archived(self, message: int) -> Any:
        (row,) = self.all("select * from menzil.archive where id = %s", message)
        return row

    def waiting(self) -> list[int]:
        return [row.id for row in self.all("select id from menzil.queue where status = 'pending' order by id")]

    def now(self) -> Any:
        return self.one("select clock_timestamp()")

    def _settle(self, function: str, messages: Iterable[Any]) -> dict[int, str]:
        ids, attempts = [m.id for m in messages], [m.num_attempts for m in messages]
        return dict(self.all(f"select id, outcome from menzil.{function}(%s::bigint[], %s::bigint[])", ids, attempts))


def ids(messages: Iterable[Any]) -> list[int]:
    return [message.id for message in messages]


def channels(messages: Iterable[Any]) -> list[str]:
    return [message.channel for message in messages]
