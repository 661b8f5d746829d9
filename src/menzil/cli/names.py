"""What lists of named things have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import click

from menzil.cli.database import Database
from menzil.cli.show import Record, cell, document, say, table
from menzil.watch import names

Command = TypeVar("Command", bound=Callable[..., Any])

#: Rows of a list unless --limit says otherwise.
LIMIT = 100


def knowing_names(db: Database, name: str) -> AbstractContextManager[None]:
    """When the database does not know this name, say which one is nearest to it."""
    return names.knowing_names(db.run, name)


def page_options(command: Command) -> Command:
    """Give a click command --limit and --after, for a list by name."""
    command = click.option("--after", default="", metavar="NAME", help="Go on behind this name.")(command)
    return limit_option(command)


def limit_option(command: Command) -> Command:
    """Give a click command --limit."""
    kind = click.IntRange(1, 10_000)
    return click.option("--limit", type=kind, default=LIMIT, show_default=True, help="Most rows to list.")(command)


def page(
    found: Sequence[Record],
    columns: Sequence[str],
    limit: int,
    *,
    as_json: bool,
    empty: str,
    go_on: str = "--after",
    key: str = "name",
) -> None:
    """Print a page of at most `limit` rows; the caller asked for one more, to know whether there is another page."""
    shown = found[:limit]
    if as_json:
        document(shown)
    elif shown:
        table(shown, columns)
    else:
        say(empty)
    if len(found) > limit:
        say(f"There are more: go on with {go_on} {cell(shown[-1][key])}")
