"""A bulk send as a test types it: open, stage rows under tokens, commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.sql.queue import Queue

COLUMNS = (
    "endpoint", "payload", "content", "priority", "ordering_key", "idempotency_key", "correlation_id", "scheduled_at",
    "expires_at", "headers", "metadata", "replay_of",
)  # fmt: skip


def row(endpoint: str | None = "work", payload: Any = None, **options: Any) -> dict[str, Any]:
    """A row to stage: a payload that is not text is written as JSON."""
    if not isinstance(payload, str) and "content" not in options:
        payload = json.dumps({} if payload is None else payload)
    return {"endpoint": endpoint, "payload": payload, **options}


class Bulk:
    def __init__(self, queue: Queue, send_id: str = "s") -> None:
        self.queue, self.send_id = queue, send_id
        self.opened = queue.rows("bulk_open", send_id)[0]

    def stage(self, token: str, rows: Sequence[dict[str, Any]]) -> None:
        with self.queue.conn.cursor() as cursor:
            cursor.executemany(
                f"insert into menzil.{self.opened.staging} (token, n, {', '.join(COLUMNS)}) "
                f"values (%s, %s, {', '.join(['%s'] * len(COLUMNS))})",
                [(token, n, *(each.get(column) for column in COLUMNS)) for n, each in enumerate(rows)],
            )

    def commit(self, *tokens: str, counts: Sequence[int] | None = None) -> tuple[int, int]:
        if counts is None:
            staged = dict(self.queue.all(f"select token, count(*) from menzil.{self.opened.staging} group by 1"))
            counts = [staged.get(token, 0) for token in tokens]
        return self.queue.one("select * from menzil.bulk_commit(%s, %s, %s)", self.send_id, list(tokens), list(counts))

    def abort(self) -> bool:
        return self.queue.call("bulk_abort", self.send_id)


def bulk(queue: Queue, *rows: dict[str, Any], send_id: str = "s") -> tuple[int, int]:
    """One send of these rows, whole."""
    send = Bulk(queue, send_id)
    send.stage("t", rows)
    return send.commit("t")


def stagings(queue: Queue) -> list[str]:
    """The staging tables there are."""
    return [
        name
        for (name,) in queue.all(
            "select relname::text from pg_class where relname ~ '^bulk_staging_' and relkind = 'r' order by 1"
        )
    ]
