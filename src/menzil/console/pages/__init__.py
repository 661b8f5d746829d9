"""The pages: one small file each, with a `PAGE`. The router finds them here."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from menzil.console.page import Page


@cache
def all_pages() -> tuple[Page, ...]:
    """Every page, by the name of its file."""
    return tuple(import_module(f"{__name__}.{module.name}").PAGE for module in iter_modules(__path__))
