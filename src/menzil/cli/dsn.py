"""The option --dsn: the first of the five answers to which database a command uses; ops/choosing.py has the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from menzil.ops.choosing import choose
from menzil.ops.dsn import Dsn

Command = TypeVar("Command", bound=Callable[..., Any])


def dsn_option(command: Command) -> Command:
    """Give a click command the option --dsn, as its parameter `dsn`; pass it on to resolve()."""
    help_text = "Database to use, as a URL or key=value pairs.  [default: MENZIL_DSN, menzil.toml, PG*, embedded]"
    return click.option("--dsn", metavar="DSN", help=help_text)(command)


def resolve(dsn: str | None) -> Dsn | None:
    """Return the connection string to use, or None for the embedded PostgreSQL."""
    return choose(dsn, "the option --dsn")
