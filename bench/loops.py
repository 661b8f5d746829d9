"""The event loop that a worker would use: the one in C where it is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module


def factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """What makes it; None is asyncio's own."""
    try:
        made: Callable[[], asyncio.AbstractEventLoop] = import_module("uvloop").new_event_loop
    except ImportError:
        return None
    return made
