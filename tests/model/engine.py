"""The real queue: calls of its public functions, in a transaction or not, and what it shows of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.json import Jsonb

from tests.model.clock import Clock

QUEUE = """
    select id, status, channel, priority, ordering_key, idempotency_key, num_attempts, retry_count, last_error, state,
           payload, content, scheduled_at, expires_at, unlock_at
      from menzil.queue order by id"""
ENDED = (
    "select id, status, channel, priority, num_attempts, retry_count, last_error from menzil.archive where id = any(%s)"
)


@dataclass(frozen=True)
class Refusal:
    """A call that raised."""

    sqlstate: str | None


@dataclass(frozen=True)
class Row:
    """A message as a dequeue, or a peek, shows it."""

    id: int
    channel: str
    num_attempts: int
    priority: int
    ordering_key: str | None
    payload: object
    content: bytes | None
    state: bytes | None
    retry_count: int
    batch: int = 0


class Engine:
    def __init__(self, dsn: str) -> None:
        self.conn = psycopg.connect(dsn, autocommit=True)
        self.other = psycopg.connect(dsn, autocommit=True)
        self.clock = Clock(self.conn)

    def close(self) -> None:
        self.conn.close()
        self.other.close()

    def in_transaction(self) -> bool:
        return self.conn.info.transaction_status is not TransactionStatus.IDLE

    def run(self, text: str, *params: object) -> list[Any]:
        cursor = self.conn.execute(text, params)
        return cursor.fetchall() if cursor.description else []

    def call(self, name: str, *given: object, **named: object) -> Any:
        """One value of a function, or its refusal. Inside a transaction a refusal undoes only itself."""
        return self._guarded(f"select menzil.{_words(name, given, named)}", *given, *named.values())

    def rows(self, columns: str, name: str, *given: object, **named: object) -> Any:
        text = f"select {columns} from menzil.{_words(name, given, named)}"
        return self._guarded(text, *given, *named.values(), many=True)

    def dequeue(self, hours: int, limit: int, channels: list[str] | None, apart: bool = False) -> list[Row]:
        return [
            Row(*row)
            for row in self.run(
                f"select {_ROW}, batch from menzil.message_dequeue(%s, %s, %s, p_apart => %s)",
                *(hours * 3_600_000, limit, channels, apart),
            )
        ]

    def next(
        self, tokens: list[tuple[int, int]], hours: int, limit: int, channels: list[str] | None
    ) -> tuple[list[Row], dict[int, str]]:
        """The messages that were leased, and the outcomes of tokens that could not be settled."""
        ids, attempts = [number for number, _ in tokens], [attempt for _, attempt in tokens]
        rows = self.run(
            f"select outcome, {_ROW}, batch from menzil.message_next(%s::bigint[], %s::bigint[], %s, %s, %s)",
            *(ids, attempts, hours * 3_600_000, limit, channels),
        )
        leased = [Row(*row) for outcome, *row in rows if outcome is None]
        return leased, {row[0]: outcome for outcome, *row in rows if outcome is not None}

    def peek(self, channel: str, limit: int) -> list[Row]:
        return [Row(*row) for row in self.run(f"select {_ROW} from menzil.message_peek(%s, %s)", channel, limit)]

    def _guarded(self, text: str, *params: object, many: bool = False) -> Any:
        saved = self.in_transaction()
        if saved:
            self.conn.execute("savepoint before")
        try:
            rows = self.run(text, *params)
        except psycopg.Error as error:
            if saved:
                self.conn.execute("rollback to before")
            return Refusal(error.sqlstate)
        return rows if many else rows[0][0]


_ROW = "id, channel, num_attempts, priority, ordering_key, payload, content, state, retry_count"


def _words(name: str, given: tuple[object, ...], named: dict[str, object]) -> str:
    return f"{name}({', '.join(['%s'] * len(given) + [f'p_{word} => %s' for word in named])})"


def json(value: object) -> Jsonb:
    return Jsonb(value)
