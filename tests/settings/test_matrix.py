"""Settings that a DBA may give to a role or a database: menzil delivers under each, and the doctor finds nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install import migrate
from tests.conftest import database
from tests.settings.day import prepare, work

_cases = itertools.count(1)

#: One setting each, or some that belong together.
SETTINGS: list[dict[str, str]] = [
    {},
    {"default_transaction_isolation": "repeatable read"},
    {"default_transaction_isolation": "serializable"},
    {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on"},
    {"statement_timeout": "500ms"},
    {"lock_timeout": "20ms"},
    {"idle_in_transaction_session_timeout": "100ms"},
    {"idle_session_timeout": "500ms"},
    {"DateStyle": "German"},
    {"DateStyle": "SQL, DMY"},
    {"DateStyle": "Postgres, MDY"},
    {"IntervalStyle": "iso_8601"},
    {"IntervalStyle": "sql_standard"},
    {"TimeZone": "Pacific/Chatham"},
    {"TimeZone": "Europe/Istanbul", "lc_time": "C"},
    {"bytea_output": "escape"},
    {"extra_float_digits": "-15"},
    {"search_path": "pg_temp, nowhere"},
    {"standard_conforming_strings": "off", "escape_string_warning": "off"},
    {"backslash_quote": "off", "array_nulls": "off"},
    {"quote_all_identifiers": "on"},
    {"client_encoding": "LATIN1"},
    {"client_encoding": "SQL_ASCII"},
    {"synchronous_commit": "off"},
    {"plpgsql.extra_errors": "all"},
    {"plpgsql.variable_conflict": "use_variable"},
    {"plpgsql.variable_conflict": "use_column"},
    {"plan_cache_mode": "force_generic_plan", "jit": "on", "jit_above_cost": "0"},
    {"row_security": "off", "transform_null_equals": "on"},
    {"client_min_messages": "error"},
    {"work_mem": "64kB", "temp_file_limit": "1MB"},
]


def name(settings: dict[str, str]) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items()) or "none"


@pytest.fixture(scope="module")
def shop(server: Embedded) -> Iterator[str]:
    """The DSN of a database whose owner, an ordinary role, has installed menzil."""
    with psycopg.connect(server.dsn, autocommit=True) as conn, database(server, "settings", "template1") as dsn:
        conn.execute("create role clerk login password 'horse' createrole")
        conn.execute("alter database settings owner to clerk")
        theirs = make_conninfo(dsn, user="clerk", password="horse")
        migrate(theirs)
        prepare(dsn, "clerk")
        yield theirs
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("drop owned by clerk")
        conn.execute("drop role clerk")


@contextmanager
def under(server: Embedded, settings: dict[str, str]) -> Iterator[None]:
    """New sessions of the clerk have these settings."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        for key, value in settings.items():
            quoted = value if key == "search_path" else f"'{value}'"
            conn.execute(f"alter role clerk in database settings set {key} = {quoted}")
        try:
            yield
        finally:
            conn.execute("alter role clerk in database settings reset all")


@pytest.mark.parametrize("settings", SETTINGS, ids=name)
def test_a_day_at_the_shop_goes_well_under_a_setting(server: Embedded, shop: str, settings: dict[str, str]) -> None:
    with under(server, settings):
        work(shop, str(next(_cases)))
