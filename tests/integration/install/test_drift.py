"""The handshake, and noticing what was changed by hand."""

from __future__ import annotations

import psycopg
import pytest

from menzil.install import check, drift, migrate
from menzil.model.errors import PermissionDeniedError, SchemaMissingError, SchemaTooNewError, SchemaTooOldError


def differences(conn, root):
    return [(one.kind, one.name, one.what) for one in drift(conn, root=root)]


def test_handshake_tells_missing_old_fitting_and_new_apart(empty, plant):
    with psycopg.connect(empty) as conn:
        status = check(conn, root=plant(1))
        assert (status.verdict, status.installed, status.known) == ("missing", 0, 1)
        with pytest.raises(SchemaMissingError, match="not installed"):
            status.demand()
        migrate(empty, root=plant(1))
        assert check(conn, root=plant(1)).ok
        check(conn, root=plant(1)).demand()
        with pytest.raises(SchemaTooOldError) as caught:
            check(conn, root=plant(2)).demand()
        assert "menzil migrate" in caught.value.hint
        migrate(empty, root=plant(2))
        with pytest.raises(SchemaTooNewError, match="has schema 2, this menzil was written for 1"):
            check(conn, root=plant(1)).demand()
        # All of that happened in one transaction of the caller, which is still good.
        assert conn.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS


def test_handshake_asks_the_schema_version_function_when_there_is_one(empty, plain, plant, toy_role, suffix):
    root = plant(2)
    (root / "functions/schema_version.sql").write_text(
        "create or replace function menzil.schema_version() returns integer language sql immutable as 'select 2';\n"
    )
    migrate(empty, root=root)
    with pytest.raises(PermissionDeniedError, match="may not use menzil"):
        check(plain, root=root)
    with psycopg.connect(empty) as admin:
        admin.execute(f"grant {toy_role} to plain_{suffix}")
    assert check(plain, root=root).ok


def test_handshake_of_the_package(empty):
    migrate(empty)
    with psycopg.connect(empty) as conn:
        assert check(conn).verdict == "ok"
        assert drift(conn) == []


def test_tables_without_their_code_do_not_fit(empty, plant):
    root = plant(2)
    migrate(empty, root=root)
    with psycopg.connect(empty) as conn:
        conn.execute("delete from menzil.installed_code")
        assert not check(conn, root=root).ok


def test_untouched_installation_has_no_drift(empty, plant):
    migrate(empty, root=plant(2))
    with psycopg.connect(empty) as conn:
        conn.execute("set search_path = public")
        assert drift(conn, root=plant(2)) == []
        # The settings it needs for itself are gone again, though the transaction is the caller's.
        assert conn.execute("show search_path").fetchone() == ("public",)


def test_changes_by_hand_are_found(empty, plant):
    root = plant(2)
    migrate(empty, root=root)
    with psycopg.connect(empty) as conn:
        conn.execute("create or replace function menzil.one() returns integer language sql immutable as 'select 2'")
        conn.execute("alter function menzil.count_toys() security definer")
        conn.execute("create function menzil.extra(p_a integer) returns integer language sql as 'select 1'")
        conn.execute("drop view menzil.toys")
        assert differences(conn, root) == [
            ("function", "count_toys()", "changed"),
            ("function", "extra(p_a integer)", "unknown"),
            ("function", "one()", "changed"),
            ("view", "toys", "missing"),
        ]
        conn.commit()
    assert migrate(empty, root=root, reapply=True).code_applied
    with psycopg.connect(empty) as conn:
        # Replacing a function sets everything back, security included; what is not ours stays and is known from now on.
        assert differences(conn, root) == []


def test_package_and_database_of_different_releases_are_found(empty, plant):
    old, new = plant(1), plant(2)
    with psycopg.connect(empty, autocommit=True) as conn:
        assert differences(conn, old) == [("migration", "0001_first", "missing"), ("code", "menzil", "missing")]
        migrate(empty, root=old)
        assert differences(conn, new) == [("migration", "0002_second", "missing"), ("code", "menzil", "outdated")]
        migrate(empty, root=new)
        assert differences(conn, old) == [("migration", "0002_second", "unknown"), ("code", "menzil", "outdated")]
        conn.execute("update menzil.migration set checksum = 'other' where version = 1")
        assert differences(conn, new) == [("migration", "0001_first", "changed")]


def test_looks_are_not_compared_across_server_releases(empty, plant):
    root = plant(2)
    migrate(empty, root=root)
    with psycopg.connect(empty) as conn:
        conn.execute("update menzil.installed_code set server_major = 9")
        conn.execute("update menzil.installed_object set fingerprint = 'printed by release 9'")
        assert differences(conn, root) == [("code", "menzil", "outdated")]
        conn.commit()
    assert migrate(empty, root=root).code_applied
    with psycopg.connect(empty) as conn:
        assert differences(conn, root) == []


def test_procedures_are_known_as_such(empty, plant):
    root = plant(2)
    (root / "functions/walk.sql").write_text(
        "create or replace procedure menzil.walk(p_steps integer) language plpgsql as 'begin commit; end';\n"
    )
    migrate(empty, root=root)
    with psycopg.connect(empty) as conn:
        assert differences(conn, root) == []
        conn.execute("drop procedure menzil.walk(integer)")
        assert differences(conn, root) == [("procedure", "walk(IN p_steps integer)", "missing")]


def test_month_that_turns_is_no_change(empty):
    migrate(empty)
    with psycopg.connect(empty) as conn:
        month = "select prosrc from pg_proc where pronamespace = 'menzil'::regnamespace and proname = 'message_dequeue'"
        before = conn.execute(month).fetchone()
        # The next month has a partition, a month years ahead has none: its functions use the table itself.
        for ahead in ("1 month", "20 years"):
            conn.execute(f"select menzil._renew_hot(name, now() + interval '{ahead}') from menzil.hot_function")
            assert conn.execute(month).fetchone() != before
            assert drift(conn) == []
        conn.execute("select menzil._renew_hot('message_dequeue', now())")
        assert conn.execute(month).fetchone() == before


def test_other_changes_of_a_function_with_a_month_are_found(empty):
    migrate(empty)
    with psycopg.connect(empty) as conn:
        conn.execute("update menzil.hot_function set template = replace(template, 'v_now < {to}', 'v_now <= {to}')")
        conn.execute("select menzil._renew_hot('message_dequeue', now())")
        assert [(one.kind, one.what) for one in drift(conn)] == [("function", "changed")]
