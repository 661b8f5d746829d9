"""Plans of every statement that a call runs, nested ones included, as PostgreSQL really ran them.

auto_explain reports each finished statement as a notice to this very session; nothing is logged on the server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.errors import Diagnostic

OPTIONS = {
    "log_min_duration": "0",
    "log_nested_statements": "on",
    "log_analyze": "on",
    "log_timing": "off",
    "log_format": "json",
    "log_level": "notice",
}

Node = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """One statement as it ran."""

    query: str
    root: Node
    compiled: bool  # by the JIT compiler

    def nodes(self) -> Iterator[Node]:
        return _below(self.root)

    @property
    def first_words(self) -> str:
        return " ".join(self.query.split())[:160]


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.get("Plans", ()):
        yield from _below(child)


class Capture:
    """A session whose plans are kept. Any statement it runs adds to `plans`."""

    def __init__(self, dsn: str) -> None:
        self.conn: psycopg.Connection[Any] = psycopg.connect(dsn, autocommit=True)
        self.plans: list[Plan] = []
        # The embedded server switches the JIT compiler off; most servers do not.
        self.conn.execute("set jit = on")
        self.conn.execute("load 'auto_explain'")
        for name, value in OPTIONS.items():
            self.conn.execute(f"set auto_explain.{name} = {value}")
        self.conn.add_notice_handler(self._on_notice)

    def run(self, statement: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement."""
        return self.conn.execute(statement, params).fetchall()

    def close(self) -> None:
        self.conn.close()

    def _on_notice(self, notice: Diagnostic) -> None:
        text = notice.message_primary or ""
        if text.startswith("duration:") and "plan:" in text:
            found = json.loads(text[text.index("{") :])
            self.plans.append(Plan(found.get("Query Text", ""), found["Plan"], "JIT" in found))
