"""JSON as the pages write it: numbers exact to the digit, times and bytes as the command line writes them."""

from __future__ import annotations

from typing import Any

from menzil.model import exact


def dumps(value: Any, indent: int | None = None) -> str:
    """Write a JSON document."""
    return exact.dumps(value, indent=indent, default=exact.plain)
