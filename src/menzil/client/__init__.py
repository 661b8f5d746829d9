"""The client: Menzil, and AsyncMenzil, which is the same, awaited.

The modules in `aio` are written by hand, those in `sync` by tools/twins.py. A program usually needs one of the two
clients, so each is loaded when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from menzil.client.awaited import AsyncMenzil
    from menzil.client.blocking import Menzil

__all__ = ["AsyncMenzil", "Menzil"]

_MODULES = {"AsyncMenzil": "menzil.client.awaited", "Menzil": "menzil.client.blocking"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return globals().setdefault(name, getattr(import_module(_MODULES[name]), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
