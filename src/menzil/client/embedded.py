"""Menzil() without a DSN: an embedded PostgreSQL, started and migrated at the first call."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from importlib import import_module


class EmbeddedServer:
    """A share in the embedded server, taken at the first use and given back at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._share: AbstractContextManager[str] | None = None
        self._dsn = ""

    def start(self) -> str:
        """Return its DSN, having started and migrated it."""
        with self._lock:
            if self._share is None:
                # By name, at run time: starting joins the rooms `embedded` and `install`, and this room may import
                # only the first. menzil.embed sits above all three.
                share: AbstractContextManager[str] = import_module("menzil.embed").open_embedded()
                self._dsn = share.__enter__()
                self._share = share
            return self._dsn

    def leave(self) -> None:
        """Give the share back."""
        with self._lock:
            share, self._share = self._share, None
        if share is not None:
            share.__exit__(None, None, None)
