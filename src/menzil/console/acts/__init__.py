"""The acts: one small file per family, with its `ACTS`. The router finds them here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from menzil.console.act import Act


@cache
def all_acts() -> dict[str, Act]:
    """Every act by its name."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return {act.name: act for module in modules for act in module.ACTS}
