"""The fixture `planted`: a database full of canaries, through which a worker has gone.

A conftest makes it its own with `from tests.canary.fixtures import planted`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import menzil
from menzil.telemetry.logs import JsonLines, TextLines
from menzil.worker.log import LOGGER
from tests.canary.canaries import Canaries, Kind
from tests.canary.planting import handlers, plant
from tests.canary.receiver import Echo, echo


@dataclass
class Planted:
    """A database full of canaries; `work` lets a worker meet them, and `logs` is what it said in each format."""

    canaries: Canaries
    dsn: str  # with a password that is a canary
    receiver: Echo
    password: str
    logs: dict[str, str] = field(default_factory=dict)

    def work(self) -> None:
        """Run a worker until nothing is due: most deliveries fail, and their errors say too much."""
        app = menzil.Worker(self.dsn, name="canary-worker", grace=1)
        handlers(self.canaries, app, self.password)
        streams: dict[str, StringIO] = {"text": StringIO(), "json": StringIO()}
        hooks = []
        for name, formatter in (("text", TextLines()), ("json", JsonLines())):
            hook = logging.StreamHandler(streams[name])
            hook.setFormatter(formatter)
            LOGGER.addHandler(hook)
            hooks.append(hook)
        before = LOGGER.level
        LOGGER.setLevel(logging.DEBUG)
        try:
            asyncio.run(app.serve(once=True))
        finally:
            LOGGER.setLevel(before)
            for hook in hooks:
                LOGGER.removeHandler(hook)
        for name, stream in streams.items():
            self.logs[name] = self.logs.get(name, "") + stream.getvalue()


@pytest.fixture
def planted(db: str) -> Iterator[Planted]:
    """Canaries are planted; nothing has worked on them yet."""
    canaries = Canaries()
    password = canaries.of(Kind.SECRET, "password of the DSN")
    role = f"canary_{password[-8:]}"
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(f"create role {role} login superuser password '{password}'")
    try:
        with echo() as receiver:
            dsn = make_conninfo(db, user=role, password=password)
            plant(canaries, dsn, receiver.base)
            yield Planted(canaries, dsn, receiver, password)
    finally:
        with psycopg.connect(db, autocommit=True) as conn:
            conn.execute(f"drop role {role}")
