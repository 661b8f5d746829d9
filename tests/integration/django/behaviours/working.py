"""What the tests share: a worker that does what is due, and what signals said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management import call_command
from django.db import connection

from menzil.contrib.django import api


def work() -> None:
    """Run the real worker of the project until nothing is due."""
    call_command("menzil", "worker", "--once", "--no-endpoints", "--no-janitors")


def ask(query: str, *values: Any) -> Any:
    """Ask the database for one value."""
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        row = cursor.fetchone()
    return None if row is None else row[0]


@contextmanager
def heard(said: list[tuple[str, str, str]]) -> Iterator[None]:
    """Write down each signal with the id and the status of its task."""

    def listen(name: str) -> Any:
        def hear(task_result: Any, **_: Any) -> None:
            said.append((name, task_result.id, str(task_result.status)))

        return hear

    signals = {name: getattr(api, f"task_{name}") for name in ("enqueued", "started", "finished")}
    hearers = {name: listen(name) for name in signals}
    for name, signal in signals.items():
        signal.connect(hearers[name])
    try:
        yield
    finally:
        for name, signal in signals.items():
            signal.disconnect(hearers[name])
