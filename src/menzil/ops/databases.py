"""Several databases: each with a name that may be shown, read from arguments or from a file with one on a line.

A line is a connection string, and before it a name where one is wanted: `shop postgresql://db1/shop`. Without a name
the database is called `dbname@host:port`. A name never holds a user or a password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from psycopg.conninfo import conninfo_to_dict

from menzil.model.errors import UsageError
from menzil.ops.choosing import Url, given
from menzil.ops.dsn import Dsn

#: What a given name may look like: it stands in log lines, labels of metrics and addresses of the console.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,99}")
_SPLIT = re.compile(r"(?P<name>\S+)\s+(?P<rest>\S.*)", re.DOTALL)


class Named(NamedTuple):
    """A database and what it is called."""

    name: str
    dsn: Dsn


#: What a program may give: connection strings, or connection strings by name.
Given: TypeAlias = Sequence[str | Url] | Mapping[str, str | Url]


def several(databases: Given, argument: str = "the argument dsn") -> list[Named]:
    """Read what a program gave."""
    if isinstance(databases, Mapping):
        return checked([_named(name, dsn, f"{argument}, {name!r}") for name, dsn in databases.items()])
    return checked(
        [
            read_line(one, f"{argument}, number {place}") if isinstance(one, str) else _unnamed(given(one, argument))
            for place, one in enumerate(databases, 1)
        ]
    )


def read_file(path: str | Path) -> list[Named]:
    """Read a file with one database on a line; empty lines and lines that begin with # are left out."""
    path = Path(path)
    hint = "write one connection string on a line, with a name before it where one is wanted"
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"The file {path} cannot be read: {error.strerror}.", hint=hint) from None
    except UnicodeDecodeError:
        raise UsageError(f"The file {path} is not UTF-8.", hint=hint) from None
    found = [
        read_line(line, f"line {place} of {path}")
        for place, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not found:
        raise UsageError(f"The file {path} names no database.", hint=hint)
    return checked(found)


def read_line(line: str, where: str) -> Named:
    """Read `[NAME] DSN`. The first word is a name if it can be no part of a connection string."""
    split = _SPLIT.fullmatch(line.strip())
    if split is None or "=" in split["name"] or "://" in split["name"] or split["rest"].startswith("="):
        return _unnamed(given(line, where))
    return _named(split["name"], split["rest"], where)


def checked(databases: Sequence[Named]) -> list[Named]:
    """Refuse a name that two databases have, and a database that has two names."""
    if not databases:
        raise UsageError("No database is named.", hint="give at least one connection string")
    names: dict[str, Named] = {}
    places: dict[str, Named] = {}
    for one in databases:
        place = name_of(one.dsn)
        if place in places:
            sentence = f"The database {place} is given twice"
            other = places[place].name
            sentence += f", as {other} and as {one.name}." if other != one.name else "."
            raise UsageError(sentence, hint=f"leave one of them out; the second is {one.dsn.chosen_by}")
        if one.name in names:
            hint = f"give the second another name; it is {one.dsn.chosen_by}"
            raise UsageError(f"Two databases have the name {one.name}.", hint=hint)
        names[one.name] = places[place] = one
    return list(databases)


def name_of(dsn: str) -> str:
    """`dbname@host:port`, as far as the connection string and the variables of libpq tell."""
    said = conninfo_to_dict(dsn)

    def ask(key: str, variable: str) -> str:
        return str(said.get(key) or os.environ.get(variable) or "")

    service = ask("service", "PGSERVICE")
    user = ask("user", "PGUSER")
    name = ask("dbname", "PGDATABASE") or service or user or "default"
    if "=" in name or "://" in name:  # libpq reads a connection string there, too, and it may hold a password
        name = "default"
    host = ask("host", "PGHOST") or ask("hostaddr", "PGHOSTADDR") or service or "local"
    port = ask("port", "PGPORT").strip(",") or "5432"  # libpq gives several hosts as many empty ports
    return f"{name}@{host}:{port}"


def secrets_of(databases: Iterable[Named]) -> list[str]:
    """The passwords in these connection strings."""
    return [str(password) for one in databases if (password := conninfo_to_dict(one.dsn).get("password"))]


def _unnamed(dsn: Dsn) -> Named:
    return Named(name_of(dsn), dsn)


def _named(name: object, dsn: object, where: str) -> Named:
    # The rest of the line may hold a password, so no error repeats it.
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "a name has 1 to 100 letters, digits and _ . @ : -; the connection string follows it"
        raise UsageError(f"The name of a database in {where} is not valid.", hint=hint)
    return Named(name, given(dsn, where))  # type: ignore[arg-type]  # refused there if it is not a text
