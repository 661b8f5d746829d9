"""A worker that is a Django app: its threads look after Django's connections, as a web server does between requests.

Django keeps a connection per thread, and closes it or replaces a broken one only when a request begins or ends. A
thread of a worker has no requests: without this it would keep a connection for ever, and one that the server closed
would fail every message.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def _databases() -> Any:
    """django.db, if the program uses it."""
    db: Any = sys.modules.get("django.db")
    settings: Any = getattr(sys.modules.get("django.conf"), "settings", None)
    return db if db is not None and getattr(settings, "configured", False) else None


def tidily(call: Callable[..., Any]) -> Callable[..., Any]:
    """Return the call with what Django does before and after a request, if the program uses Django's databases."""
    db = _databases()
    if db is None:
        return call

    def tidy(*args: Any) -> Any:
        db.close_old_connections()
        try:
            return call(*args)
        finally:
            db.close_old_connections()

    return tidy


def let_go() -> None:
    """Close the connections of a thread that ends: with CONN_MAX_AGE they would stay open in the server."""
    db = _databases()
    if db is not None:
        db.connections.close_all()
