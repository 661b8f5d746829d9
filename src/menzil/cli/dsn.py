"""Which database a command talks to.

The first of these that is set decides: --dsn, MENZIL_DSN, `dsn` in the nearest menzil.toml (this directory or one
above it), the PG* variables of libpq. When none is, the answer is None: the embedded PostgreSQL.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from menzil.model.errors import UsageError

# The variables that name a server, a database or a user. The others (PGSSLMODE, PGPASSFILE …) only say how to
# connect, so they alone are no reason to leave the embedded server.
LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE")

Command = TypeVar("Command", bound=Callable[..., Any])


def dsn_option(command: Command) -> Command:
    """Give a click command the option --dsn, as its parameter `dsn`; pass it on to resolve()."""
    help_text = "Database to use, as a URL or key=value pairs.  [default: MENZIL_DSN, menzil.toml, PG*, embedded]"
    return click.option("--dsn", metavar="DSN", help=help_text)(command)


def resolve(dsn: str | None, *, environ: Mapping[str, str] | None = None, directory: Path | None = None) -> str | None:
    """Return the connection string to use, or None for the embedded PostgreSQL.

    An empty string is an answer too: libpq then takes everything from its own PG* variables.
    """
    environ = os.environ if environ is None else environ
    if dsn is not None:
        return dsn
    if environ.get("MENZIL_DSN"):
        return environ["MENZIL_DSN"]
    from_file = _from_file(Path.cwd() if directory is None else directory)
    if from_file is not None:
        return from_file
    return "" if any(environ.get(name) for name in LIBPQ_VARIABLES) else None


def _from_file(directory: Path) -> str | None:
    for place in (directory, *directory.parents):
        file = place / "menzil.toml"
        if file.is_file():
            return _read(file)
    return None


def _read(file: Path) -> str | None:
    try:
        dsn = tomllib.loads(file.read_text(encoding="utf-8")).get("dsn")
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint='it may hold one line: dsn = "…"') from error
    if dsn is not None and not isinstance(dsn, str):
        raise UsageError(f"dsn in {file} is not a string", hint='write dsn = "postgresql://…"')
    return dsn
