"""Settings that a DBA may give to a role or a database: menzil delivers under each, and the doctor finds nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install import drift, migrate, script
from tests.conftest import database
from tests.settings.day import prepare, work

Settings = dict[str, str]

_cases = itertools.count(1)

#: Each of them alone is the long form. Timeouts are long enough for a busy machine; test_time_outs.py has short ones.
EACH: list[Settings] = [
    {},
    {"default_transaction_isolation": "repeatable read"},
    {"default_transaction_isolation": "serializable"},
    {"default_transaction_deferrable": "on"},
    {"statement_timeout": "2s"},
    {"lock_timeout": "100ms"},
    {"idle_in_transaction_session_timeout": "2s"},
    {"idle_session_timeout": "1s"},
    {"transaction_timeout": "5s"},
    {"DateStyle": "German"},
    {"DateStyle": "SQL, DMY"},
    {"DateStyle": "Postgres, MDY"},
    {"IntervalStyle": "iso_8601"},
    {"IntervalStyle": "sql_standard"},
    {"IntervalStyle": "postgres_verbose"},
    {"TimeZone": "Pacific/Chatham"},
    {"TimeZone": "America/St_Johns"},
    {"bytea_output": "escape"},
    {"extra_float_digits": "-15"},
    {"extra_float_digits": "3"},
    {"search_path": "pg_temp, nowhere"},
    {"search_path": "''"},
    {"standard_conforming_strings": "off"},
    {"backslash_quote": "off"},
    {"quote_all_identifiers": "on"},
    {"client_encoding": "LATIN1"},
    {"client_encoding": "SQL_ASCII"},
    {"client_min_messages": "error"},
    {"synchronous_commit": "off"},
    {"plpgsql.extra_errors": "all"},
    {"plpgsql.variable_conflict": "use_variable"},
    {"plpgsql.variable_conflict": "use_column"},
    {"plan_cache_mode": "force_generic_plan"},
    {"plan_cache_mode": "force_custom_plan"},
    {"jit": "on", "jit_above_cost": "0"},
    {"row_security": "off"},
    {"transform_null_equals": "on"},
    {"work_mem": "64kB"},
    {"enable_indexscan": "off", "enable_indexonlyscan": "off"},
    {"enable_partition_pruning": "off"},
    {"default_toast_compression": "pglz"},
    {"xmloption": "document"},
    {"lc_monetary": "C", "lc_numeric": "C", "lc_time": "C"},
]

#: What makes nothing else of each other may be tried together: a failure names the few it may come from.
TOGETHER: list[Settings] = [
    {"default_transaction_isolation": "repeatable read", "TimeZone": "Pacific/Chatham"},
    {"default_transaction_isolation": "serializable", "default_transaction_deferrable": "on", "DateStyle": "German"},
    {"standard_conforming_strings": "off", "IntervalStyle": "iso_8601", "client_encoding": "LATIN1"},
    {"DateStyle": "SQL, DMY", "bytea_output": "escape", "extra_float_digits": "-15", "client_encoding": "SQL_ASCII"},
    {"DateStyle": "Postgres, MDY", "IntervalStyle": "sql_standard", "search_path": "pg_temp, nowhere"},
    {"idle_in_transaction_session_timeout": "2s", "idle_session_timeout": "1s", "lock_timeout": "100ms"},
    {"statement_timeout": "5s", "synchronous_commit": "off", "quote_all_identifiers": "on"},
    {"plpgsql.extra_errors": "all", "plpgsql.variable_conflict": "use_variable", "backslash_quote": "off"},
    {"plpgsql.variable_conflict": "use_column", "plan_cache_mode": "force_generic_plan", "transform_null_equals": "on"},
]

#: Under which menzil is installed, too.
INSTALLED: Settings = {
    "default_transaction_isolation": "serializable",
    "statement_timeout": "5s",
    "lock_timeout": "100ms",
    "idle_in_transaction_session_timeout": "2s",
    "DateStyle": "German",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "standard_conforming_strings": "off",
    "client_encoding": "SQL_ASCII",
    "search_path": "public, pg_temp",
    "quote_all_identifiers": "on",
    "check_function_bodies": "on",
    "plpgsql.extra_errors": "all",
}


def name(settings: Settings) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items()) or "none"


@pytest.fixture(scope="module")
def clerk(server: Embedded) -> Iterator[str]:
    """An ordinary role that may own a database."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute("create role clerk login password 'horse' createrole")
        yield "clerk"
        conn.execute("drop owned by clerk")
        conn.execute("drop role clerk")


@pytest.fixture(scope="module")
def shop(server: Embedded, clerk: str) -> Iterator[str]:
    """The DSN of a database whose owner has installed menzil."""
    with owned(server, "settings", clerk) as dsn:
        migrate(dsn)
        prepare(make_conninfo(server.dsn, dbname="settings"), clerk)
        yield dsn


@contextmanager
def owned(server: Embedded, name: str, owner: str) -> Iterator[str]:
    with database(server, name, "template1") as dsn, psycopg.connect(server.dsn, autocommit=True) as conn:
        conn.execute(f"alter database {name} owner to {owner}")
        yield make_conninfo(dsn, user=owner, password="horse")


@contextmanager
def under(server: Embedded, whose: str, settings: Settings) -> Iterator[None]:
    """New sessions of this role or database have these settings."""
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        known = {row[0].lower() for row in conn.execute("select name from pg_settings")}
        for key, value in settings.items():
            if "." not in key and key.lower() not in known:
                pytest.skip(f"this PostgreSQL has no {key}")
            quoted = value if key == "search_path" else f"'{value}'"
            conn.execute(f"alter {whose} set {key} = {quoted}")
        try:
            yield
        finally:
            conn.execute(f"alter {whose} reset all")


@pytest.mark.parametrize("settings", TOGETHER, ids=name)
def test_a_day_at_the_shop_goes_well_under_the_settings_of_a_role(
    server: Embedded, shop: str, settings: Settings
) -> None:
    with under(server, "role clerk in database settings", settings):
        work(shop, str(next(_cases)))


@pytest.mark.torture
@pytest.mark.parametrize("whose", ["role clerk", "database settings"])
@pytest.mark.parametrize("settings", EACH, ids=name)
def test_a_day_at_the_shop_goes_well_under_each_setting(
    server: Embedded, shop: str, settings: Settings, whose: str
) -> None:
    with under(server, whose, settings):
        work(shop, str(next(_cases)))


def test_a_printed_script_installs_the_same_under_the_settings_of_a_database(server: Embedded, clerk: str) -> None:
    with owned(server, "printed", clerk) as dsn, under(server, "database printed", INSTALLED):
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(script("install"))
        with psycopg.connect(make_conninfo(server.dsn, dbname="printed")) as conn:
            assert drift(conn) == []
        assert not migrate(dsn).changed


def test_menzil_is_installed_and_works_under_the_settings_of_a_database(server: Embedded, clerk: str) -> None:
    with owned(server, "strict", clerk) as dsn, under(server, "database strict", INSTALLED):
        assert migrate(dsn).changed
        assert not migrate(dsn).changed
        prepare(make_conninfo(server.dsn, dbname="strict"), clerk)
        work(dsn, "strict")
        assert migrate(dsn, reapply=True).changed
