"""The address of a test's database as a URL, which psycopg, asyncpg and SQLAlchemy all read."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict


def url_of(dsn: str, database: str) -> str:
    """The address of this database on the server of `dsn`, with all that `dsn` says besides."""
    said = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value is not None}
    user, password, _ = (quote(said.pop(name, ""), safe="") for name in ("user", "password", "dbname"))
    account = f"{user}:{password}@" if password else f"{user}@" if user else ""
    where = ""
    # Sockets and lists of servers do not fit between the slashes in a way that all three read.
    if said.get("host") and not set(said["host"]) & {"/", ",", "@"} and "," not in said.get("port", ""):
        host, port = said.pop("host"), said.pop("port", "")
        where = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    rest = f"?{urlencode(said, quote_via=quote)}" if said else ""
    return f"postgresql://{account}{where}/{quote(database, safe='')}{rest}"
