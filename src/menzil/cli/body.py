"""The body of a message as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from menzil.cli.show import cell, pretty


def show_body(message: Mapping[str, Any]) -> None:
    """Print the payload over several lines, or how many bytes there are."""
    if message["content"] is not None:
        click.echo(cell(message["content"]))
        return
    for line in pretty(message["payload"]).split("\n"):
        click.echo(cell(line))
