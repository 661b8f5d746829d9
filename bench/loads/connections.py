"""A worker's connections: one per database, kept, as a real client keeps them."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import set_json_loads

from menzil import Menzil

_backends: set[int] = set()


@cache
def connect(dsn: str) -> psycopg.Connection[Any]:
    """A connection that commits each statement and leaves JSON as it came: parsing is the handler's business."""
    conn: psycopg.Connection[Any] = psycopg.connect(dsn, autocommit=True)
    set_json_loads(lambda text: text, context=conn)
    if conn.info.host.startswith("/") or conn.info.hostaddr in ("127.0.0.1", "::1"):
        _backends.add(conn.info.backend_pid)
    return conn


@cache
def client(dsn: str) -> Menzil:
    """menzil's own client."""
    return Menzil(dsn)


def cpu_seconds() -> float:
    """Processor time of this process and of the server processes behind `connect`, where they can be seen."""
    spent = time.process_time()
    for pid in _backends:
        with suppress(OSError, ValueError, IndexError):
            spent += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    return spent
