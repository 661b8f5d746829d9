"""The options --dsn and --dsn-file: the first of the five answers to which database; ops/choosing.py has the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from menzil.model.errors import UsageError
from menzil.ops.choosing import choose
from menzil.ops.databases import Named, name_of, read_file, read_line, several
from menzil.ops.dsn import Dsn

Command = TypeVar("Command", bound=Callable[..., Any])

_ARGUMENT = "the option --dsn"


def dsn_option(command: Command) -> Command:
    """Give a click command the option --dsn, as its parameter `dsn`; pass it on to resolve()."""
    help_text = "Database to use, as a URL or key=value pairs.  [default: MENZIL_DSN, menzil.toml, PG*, embedded]"
    return click.option("--dsn", metavar="DSN", multiple=True, callback=_only_one, help=help_text)(command)


def _only_one(ctx: click.Context, _param: click.Parameter, given: Sequence[str]) -> str | None:
    # click would take the last of several, and the others would be left out without a word.
    if len(given) > 1:
        raise UsageError(f"`{ctx.command_path}` works on one database, and --dsn is given {len(given)} times.")
    return given[0] if given else None


def dsns_options(command: Command) -> Command:
    """Give a click command --dsn, which may be repeated, and --dsn-file: parameters `dsns` and `dsn_file`."""
    text = "Database to use, as a URL or key=value pairs, perhaps after a name and a space; may be repeated."
    text += "  [default: MENZIL_DSN, menzil.toml, PG*, embedded]"
    file = "Several databases, one on a line as for --dsn."
    command = click.option("--dsn-file", type=click.Path(path_type=Path), metavar="FILE", help=file)(command)
    return click.option("--dsn", "dsns", metavar="DSN", multiple=True, help=text)(command)


def resolve(dsn: str | None) -> Dsn | None:
    """Return the connection string to use, or None for the embedded PostgreSQL."""
    return choose(dsn, _ARGUMENT)


def several_of(dsns: Sequence[str], dsn_file: Path | None) -> list[Named] | None:
    """Return the databases of a command that was given several, or one with a name; None where it was given one."""
    if dsn_file is not None:
        if dsns:
            raise UsageError("Databases are given twice, by --dsn and by --dsn-file.", hint="leave one of them out")
        return read_file(dsn_file)
    if not dsns:
        return None
    if len(dsns) == 1:
        (one,) = [read_line(dsns[0], _ARGUMENT)]
        return None if one.name == name_of(one.dsn) else [one]
    return several(dsns, _ARGUMENT)
