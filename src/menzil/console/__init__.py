"""The operator's seat in a browser: an ASGI application that answers why a message is not moving.

`Console`, `Consoles` and `Access` are read when first asked for: they need the extra `console`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from menzil.model.errors import UsageError
from menzil.model.parts import must_be_whole

if TYPE_CHECKING:
    from menzil.console.access import Access
    from menzil.console.app import Console
    from menzil.console.several import Consoles

__all__ = ["Access", "Console", "Consoles"]

_LATER = {
    "Access": "menzil.console.access",
    "Console": "menzil.console.app",
    "Consoles": "menzil.console.several",
}

#: The packages of the extra, as Python names them.
NEEDED = ("starlette", "jinja2", "uvicorn")


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    demand_extra()
    return globals().setdefault(name, getattr(import_module(_LATER[name]), name))


def demand_extra() -> None:
    """Refuse to go on without the packages of the extra. Ask before importing any other module of this room."""
    must_be_whole("The console", "menzil.console.app", "menzil-console", "console")
    for package in NEEDED:
        try:
            import_module(package)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != package:
                raise
            sentence = f"The console needs the package {package}, which is not installed."
            raise UsageError(sentence, hint="pip install 'menzil[console]'") from None
