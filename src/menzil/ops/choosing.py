"""Which database: five answers, asked for in this order, and the first one decides.

    1  the argument           Menzil(dsn), Worker(dsn), --dsn, .option("dsn", …)
    2  MENZIL_DSN             an empty variable counts as not set
    3  dsn in menzil.toml     the nearest one, in this directory or one above it
    4  PG* variables          those of libpq that name a server, a database or a user
    5  none of them           the embedded PostgreSQL

Clients, workers, the command and Spark ask here, so that a program and its worker cannot watch two databases.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from menzil.model.errors import UsageError
from menzil.ops.dsn import Dsn

VARIABLE = "MENZIL_DSN"
#: What other programs call it.
_MEANT = frozenset(f"MENZIL_{word}" for word in ("DATABASE", "DATABASE_URL", "DB", "DB_URL", "PG_DSN", "URL"))
FILE = "menzil.toml"
#: What the file may say.
KEYS = ("dsn",)
# The variables that name a server, a database or a user. The others (PGSSLMODE, PGPASSFILE …) only say how to
# connect, so they alone are no reason to leave the embedded server.
LIBPQ_VARIABLES = ("PGHOST", "PGHOSTADDR", "PGPORT", "PGDATABASE", "PGUSER", "PGSERVICE")


#: What an error calls the second answer.
_variable_told = f"the variable {VARIABLE}"


class Url(Protocol):
    """A URL of SQLAlchemy, such as that of an engine."""

    def render_as_string(self, hide_password: bool = True) -> str: ...


def choose(
    dsn: str | Url | None,
    argument: str = "the argument dsn",
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Dsn | None:
    """Return the connection string to use, or None for the embedded PostgreSQL.

    An empty argument is an answer too: libpq then takes everything from its own defaults. `directory` is where the
    search for menzil.toml begins; `argument` is what an error calls the first answer.
    """
    environ = os.environ if environ is None else environ
    if dsn is not None:
        return given(dsn, argument)
    if environ.get(VARIABLE, "").strip():
        return Dsn(environ[VARIABLE], _variable_told)
    _refuse_misspelled(environ)
    found = _from_file(here() if directory is None else directory)
    if found is not None:
        return found
    named = [name for name in LIBPQ_VARIABLES if environ.get(name)]
    return Dsn("", f"the variable{'s' if len(named) > 1 else ''} {', '.join(named)}") if named else None


@contextmanager
def variable_set(dsn: str, told: str) -> Iterator[None]:
    """Set the variable for the commands of a framework; errors then name where the framework has it from."""
    global _variable_told
    before, told_before = os.environ.get(VARIABLE), _variable_told
    os.environ[VARIABLE], _variable_told = dsn, told
    try:
        yield
    finally:
        _variable_told = told_before
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def why_embedded(environ: Mapping[str, str] | None = None) -> str:
    """Why the embedded server is used, as a part of a sentence. An empty variable was meant to name a database."""
    environ = os.environ if environ is None else environ
    if VARIABLE in environ:
        return f"{VARIABLE} is set and empty, and no argument, {FILE} or PG* variable names a database"
    return f"no argument, {VARIABLE}, {FILE} or PG* variable names a database"


def _refuse_misspelled(environ: Mapping[str, str]) -> None:
    """A variable that was meant to name the database would lead to another one, and no error would say so."""
    from difflib import get_close_matches

    for name in environ:
        meant = name.upper()
        misspelled = not meant.startswith(VARIABLE) and get_close_matches(meant, (VARIABLE,), 1, 0.85)
        if name != VARIABLE and (meant == VARIABLE or meant in _MEANT or misspelled):
            sentence = f"The variable {name} is set, and menzil does not read it."
            raise UsageError(sentence, hint=f"did you mean {VARIABLE}?")


def given(dsn: str | Url, argument: str = "the argument dsn") -> Dsn:
    """Return the first answer; one that was chosen before remembers by what."""
    if isinstance(dsn, Dsn):
        return dsn
    if not isinstance(dsn, str) and hasattr(dsn, "render_as_string"):
        dsn = dsn.render_as_string(hide_password=False)  # str() would hide it
    if not isinstance(dsn, str):
        raise UsageError(f"The DSN must be text, not {type(dsn).__name__}.", hint="give a connection string")
    return Dsn(dsn, argument if dsn.strip() else f"{argument}, which is empty, so libpq's defaults")


def here() -> Path:
    """The directory of this process. One that was removed holds no menzil.toml, and neither does the root."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


def _from_file(directory: Path) -> Dsn | None:
    for place in (directory, *directory.parents):
        file = place / FILE
        try:
            # A link that leads nowhere was meant to be a file: a secret that is not mounted, for one.
            there = file.is_file() or file.is_symlink()
        except OSError as error:  # a directory this user may not enter
            hint = f"set {VARIABLE}, or start in another directory"
            raise UsageError(f"{file} cannot be looked for: {error.strerror}.", hint=hint) from error
        if there:
            return _read(file)
    return None


def _read(file: Path) -> Dsn | None:
    import tomllib
    from difflib import get_close_matches

    try:
        said = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{file} cannot be read: {error}", hint='it may hold one line: dsn = "…"') from error
    for name in said:
        # A misspelled dsn would lead to another database, and no error would say so.
        if name not in KEYS:
            near = get_close_matches(name.lower(), KEYS, 1)
            meant = f", did you mean {near[0]}?" if near else "."
            raise UsageError(f"{file} has the unknown key {name}{meant}", hint='it may hold one line: dsn = "…"')
    dsn = said.get("dsn")
    if dsn is None:
        return None
    if not isinstance(dsn, str):
        raise UsageError(f"dsn in {file} is not a string", hint='write dsn = "postgresql://…"')
    return Dsn(dsn, f"dsn in {file}")
