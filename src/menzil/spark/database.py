"""Which database a job of Spark talks to: the five answers, as a connection string that means the same in every task.

Tasks may run on other machines. What libpq would take from the environment of the driver is therefore written out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from menzil.embedded.control import status
from menzil.embedded.dsn import tcp_dsn
from menzil.embedded.places import data_dir
from menzil.model.errors import UsageError
from menzil.ops.choosing import choose, why_embedded
from menzil.ops.dsn import Dsn, understood

LOGGER = logging.getLogger("menzil.database")

#: The embedded server that the driver's own process started: it runs until that process ends.
_shares: list[Any] = []


def for_driver(dsn: str | None) -> Dsn:
    """The answer in the process of the driver, which starts the embedded server when that is the answer."""
    chosen = choose(dsn)
    if chosen is None:
        # By name, at run time: starting joins the rooms `embedded` and `install`; this room may not import the second.
        share = import_module("menzil.embed").open_embedded()
        chosen = share.__enter__()
        _shares.append(share)
    return _written_out(chosen)


def for_source(dsn: str | None) -> Dsn:
    """The answer in a process of Spark's planner, which is too short-lived to keep an embedded server running."""
    chosen = choose(dsn, "the option dsn")
    if chosen is None:
        chosen = _running()
    elif dsn is not None:
        # menzil.spark.read() chose in the process of the driver, and gave what it found as the option.
        elsewhere = choose(None)
        chosen = elsewhere if elsewhere is not None and _written_out(elsewhere) == chosen else chosen
    if chosen is None:
        hint = 'give .option("dsn", …), set MENZIL_DSN before Spark starts, or run `menzil pg start`'
        raise UsageError(
            f'format("menzil") starts no embedded PostgreSQL, none runs in {data_dir()}, and {why_embedded()}.',
            hint=hint,
        )
    return _written_out(chosen)


def asking(dsn: str, name: str) -> psycopg.Connection[Any]:
    """A connection of the driver for questions. Prepares nothing: a pooler in transaction mode may stand between."""
    return psycopg.connect(understood(dsn), autocommit=True, prepare_threshold=None, application_name=name)


@contextmanager
def session_of(conn: psycopg.Connection[Any], dsn: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection whose locks hold until the end of the block: this one, or a transaction of another one.

    A pooler in transaction mode gives each transaction to any of its sessions, and a lock of a session would stay with
    that one. Such a pooler tells a client another process id than the server has.
    """
    if conn.execute("select pg_backend_pid()").fetchone() == (conn.info.backend_pid,):
        yield conn
        return
    with asking(dsn, "menzil lock") as held, held.transaction():
        held.execute(
            "select set_config(s.name, '0', true) from pg_settings s"
            " where s.name in ('idle_in_transaction_session_timeout', 'transaction_timeout')"
        )
        yield held


def _running() -> Dsn | None:
    directory = data_dir()
    found = status(directory)
    if found is None:
        return None
    LOGGER.warning("The embedded PostgreSQL in %s is used: %s.", directory, why_embedded())
    why = f"nothing else: {why_embedded()}, so it is the embedded PostgreSQL in {directory}"
    return Dsn(tcp_dsn(found.home, found.port), why)


def _written_out(dsn: Dsn) -> Dsn:
    said = conninfo_to_dict(dsn)
    known = [(one.keyword.decode(), (one.envvar or b"").decode()) for one in Conninfo.get_defaults()]
    meant = {name: os.environ[variable] for name, variable in known if variable and os.environ.get(variable)}
    missing = {name: value for name, value in meant.items() if name not in said}
    return Dsn(make_conninfo(dsn, **missing), dsn.chosen_by) if missing else dsn
