"""A connection string: checked, in the form that libpq reads, and with a memory of where it was found.

SQLAlchemy writes the driver into the URL (postgresql+asyncpg://…), names several servers by several `host` parameters,
and lets asyncpg spell sslmode as ssl. libpq understands none of these. Of several `host` parameters it takes the last
one and does not say so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl, quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from menzil.model.errors import ConnectionFailedError, MenzilError, UsageError, unreachable

E = TypeVar("E", bound=MenzilError)

_URL = re.compile(r"(?:postgresql|postgres)(?:\+(?P<driver>\w+))?://", re.IGNORECASE)
_WHO = re.compile(r"[^@/]*@")
#: Parameters of SQLAlchemy and of drivers that say nothing about the server.
_OF_DRIVERS = frozenset(
    [
        "async_fallback",
        "command_timeout",
        "prepared_statement_cache_size",
        "prepared_statement_name_func",
        "statement_cache_size",
        "max_cached_statement_lifetime",
        "max_cacheable_statement_size",
        "use_insertmanyvalues",
    ]
)
_SSL = {"true": "require", "1": "require", "false": "disable", "0": "disable"}
_UNKNOWN = re.compile(r'invalid (?:URI query parameter|connection option):? "(\w+)"')
#: What other programs write into a URL, and libpq does not know.
_ELSEWHERE = frozenset(
    ["schema", "pgbouncer", "connection_limit", "pool_timeout", "currentSchema", "charset", "timeout"]
)
_ESCAPE = "write @ : / # ? and % of a user or password as %40 %3A %2F %23 %3F %25"
_HINT = 'write it like "postgresql://user@host/database"'


class Dsn(str):
    """A connection string that knows which answer it is, so that an error can name it."""

    __slots__ = ("chosen_by",)
    chosen_by: str

    def __new__(cls, text: str, chosen_by: str) -> Dsn:
        """Keep `text` as libpq reads it; refuse what libpq would not understand."""
        dsn = super().__new__(cls, understood(text, chosen_by))
        dsn.chosen_by = chosen_by
        return dsn

    def __reduce__(self) -> tuple[object, ...]:
        return (Dsn, (str(self), self.chosen_by))


def understood(text: str, chosen_by: str | None = None) -> str:
    """Return the connection string in libpq's form, or refuse it. No error repeats it: it may hold a password."""
    found = _plain(text.strip())
    try:
        said = conninfo_to_dict(found)
        if _URL.match(found) and _holds_a_piece_of_a_password(said):
            refusal = UsageError("The DSN has a host or a port that none can be.", hint=_ESCAPE)
            raise _named(refusal, chosen_by)
    except psycopg.Error as error:
        sentence = f"The DSN is not a connection string PostgreSQL understands{_unknown(error)}."
        refusal = UsageError(sentence, hint=_hint(found))
        raise _named(refusal, chosen_by) from None
    return found


def _holds_a_piece_of_a_password(said: Mapping[str, object]) -> bool:
    """An @ or a / of a password that is not escaped ends the password, and the rest of it is read as the host."""
    host, port = str(said.get("host") or ""), str(said.get("port") or "")
    return "@" in host.lstrip("@") or re.fullmatch(r"[\d,\s]*", port) is None


def explained(error: E, dsn: str) -> E:
    """Add to the hint which of the five answers chose the database, where that may be what is wrong."""
    return _named(error, getattr(dsn, "chosen_by", None))


def cannot_reach(error: psycopg.Error, dsn: str) -> ConnectionFailedError:
    """Return what to raise, `from` the original, when a connection to this database could not be opened."""
    return explained(unreachable(error), dsn)


def _named(error: E, chosen_by: str | None) -> E:
    if chosen_by is not None:
        why = f"the database was chosen by {chosen_by}"
        if not error.hint:
            error.hint = why
        elif error.hint.endswith((".", "?")):
            error.hint = f"{error.hint} {why[0].upper()}{why[1:]}"
        else:
            error.hint = f"{error.hint}; {why}"
    return error


def _unknown(error: psycopg.Error) -> str:
    """Name the parameter that libpq does not know, if it is surely a parameter and not a piece of a password."""
    found = _UNKNOWN.search(str(error))
    name = found[1] if found else ""
    if name in _ELSEWHERE:
        return f": it has no parameter {name}"
    from difflib import get_close_matches

    known = [one.keyword.decode() for one in psycopg.pq.Conninfo.get_defaults()]
    near = get_close_matches(name, known, 1, 0.8)
    return f": it has no parameter {name}, but {near[0]}" if near else ""


def _hint(text: str) -> str:
    if text[:1] in "\"'":
        return "leave out the quotation marks"
    if text.startswith("jdbc:"):
        return 'leave out "jdbc:"'
    return f"{_HINT}; {_ESCAPE}" if "@" in text and _URL.match(text) else _HINT


def _plain(text: str) -> str:
    url = _URL.match(text)
    if url is None:
        return text
    # As libpq reads it: who connects ends at the first @ before a slash, and may hold a question mark.
    who = _WHO.match(text, url.end())
    rest = text[who.end() if who else url.end() :]
    place, _, query = rest.partition("?")
    given = parse_qsl(query, keep_blank_values=True)
    if url["driver"] is None and [name for name, _ in given].count("host") < 2:
        return text
    kept = [
        (name, value)
        for name, value in (_renamed(name, value) for name, value in given)
        if name not in _OF_DRIVERS and name != "host"
    ]
    kept = _hosts([value for name, value in given if name == "host"]) + kept
    joined = "&".join(f"{quote(name, safe='')}={quote(value, safe=',')}" for name, value in kept)
    return f"postgresql://{who[0] if who else ''}{place}{'?' if joined else ''}{joined}"


def _renamed(name: str, value: str) -> tuple[str, str]:
    return ("sslmode", _SSL.get(value.lower(), value)) if name == "ssl" else (name, value)


def _hosts(given: list[str]) -> list[tuple[str, str]]:
    """Turn host=a:1&host=b:2 into host=a,b&port=1,2. A socket directory has no port behind it."""
    if not given:
        return []
    pairs = [_host(one) for host in given for one in host.split(",")]
    found = [("host", ",".join(host for host, _ in pairs))]
    return [*found, ("port", ",".join(port for _, port in pairs))] if any(port for _, port in pairs) else found


def _host(given: str) -> tuple[str, str]:
    split = re.fullmatch(r"\[?(?P<host>[^\[\]]+?)\]?:(?P<port>\d+)", given)
    plain = given.startswith("/") or (given.count(":") > 1 and not given.startswith("["))
    return (given, "") if split is None or plain else (split["host"], split["port"])


def server_of(dsn: str) -> tuple[str, int | None] | None:
    """Host, or directory of the socket, and port; None where the string names none, or several."""
    found = conninfo_to_dict(dsn)
    host = str(found.get("host") or found.get("hostaddr") or os.environ.get("PGHOST") or "")
    if not host or "," in host:
        return None
    port = str(found.get("port") or os.environ.get("PGPORT") or 5432)
    return host, int(port) if port.isdecimal() else None
