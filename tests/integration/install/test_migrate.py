"""Installing over a connection: what it does, what it refuses, and with how few rights it manages."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from menzil.install import InstallError, MigrationChangedError, drift, migrate
from menzil.model.errors import ConnectionFailedError, PermissionDeniedError, SchemaTooNewError, UsageError
from tests.integration.install.catalog import dump
from tests.integration.install.toy import LABELS


def value(dsn: str, query: str):
    with psycopg.connect(dsn) as conn:
        return conn.execute(query).fetchone()[0]


def test_fresh_install_applies_everything(empty, plant):
    lines: list[str] = []
    report = migrate(empty, root=plant(2), progress=lines.append)
    assert (report.from_version, report.to_version, report.applied) == (0, 2, LABELS)
    assert report.code_applied
    assert value(empty, "select menzil.count_toys()") == 0
    assert value(empty, "select count(*) from menzil.toys") == 0
    assert [line.split(":")[0] for line in lines] == [
        "applying 0001_first",
        "applying 0002_second",
        "applying functions, views and roles",
    ]


def test_tables_that_came_without_rows_are_adopted_and_brought_up_to_date(empty, plant):
    migrate(empty, root=plant(1))
    with psycopg.connect(empty) as conn:  # what a dump without data leaves
        conn.execute("truncate menzil.migration, menzil.installed_code, menzil.installed_object")
    lines: list[str] = []
    report = migrate(empty, root=plant(2), progress=lines.append)
    assert (report.from_version, report.to_version, report.applied) == (1, 2, LABELS[1:])
    assert lines[0].startswith("adopting schema 1, which came without its rows: done")
    with psycopg.connect(empty) as conn:
        assert drift(conn, root=plant(2)) == []
    assert not migrate(empty, root=plant(2)).changed


def test_tables_that_came_without_rows_are_not_adopted_by_other_migrations(empty, plant):
    migrate(empty, root=plant(1))
    with psycopg.connect(empty) as conn:
        conn.execute("truncate menzil.migration, menzil.installed_code, menzil.installed_object")
    root = plant(2)
    first = next(root.glob("migrations/0001_*.sql"))
    first.write_text(first.read_text() + "-- another text\n")
    with pytest.raises(MigrationChangedError, match="up to 1 are not those"):
        migrate(empty, root=root)


def test_second_run_changes_nothing(empty, plant):
    root = plant(2)
    migrate(empty, root=root)
    before = dump(empty), value(empty, "select applied_at from menzil.installed_code")
    lines: list[str] = []
    report = migrate(empty, root=root, progress=lines.append)
    assert not report.changed
    assert lines == []
    assert before == (dump(empty), value(empty, "select applied_at from menzil.installed_code"))


def test_the_package_installs_itself(empty):
    assert migrate(empty).changed
    assert not migrate(empty).changed


def test_fresh_install_equals_upgrading_release_by_release(empty, another, plant):
    migrate(empty, root=plant(2))
    migrate(another, root=plant(1))
    report = migrate(another, root=plant(2))
    assert (report.from_version, report.applied) == (1, LABELS[1:])
    assert dump(empty) == dump(another)


def test_target_stops_early_and_leaves_the_code_alone(empty, plant):
    root = plant(2)
    report = migrate(empty, root=root, target=1)
    assert (report.to_version, report.applied, report.code_applied) == (1, LABELS[:1], False)
    assert value(empty, "select count(*) from menzil.installed_code") == 0
    assert migrate(empty, root=root).applied == LABELS[1:]
    for unreachable in (1, 3):
        with pytest.raises(UsageError, match="forward"):
            migrate(empty, root=root, target=unreachable)


def test_changed_function_is_applied_without_a_migration(empty, plant):
    root = plant(2)
    migrate(empty, root=root)
    (root / "functions/deep/one.sql").write_text(
        "drop function if exists menzil.one();\n"
        "create function menzil.one(p_more integer = 1) returns integer language sql as 'select 1 + p_more';\n"
    )
    report = migrate(empty, root=root)
    assert (report.applied, report.code_applied) == ([], True)
    assert value(empty, "select menzil.count_toys()") == 1


def test_code_of_a_newer_release_is_not_taken_back(empty, plant):
    root = plant(2)
    migrate(empty, root=root)
    with psycopg.connect(empty) as conn:
        conn.execute("update menzil.installed_code set package = '99.0', checksum = 'newer'")
    lines: list[str] = []
    assert not migrate(empty, root=root, progress=lines.append).changed
    assert "newer than this one" in lines[0]
    assert migrate(empty, root=root, reapply=True).code_applied


def test_database_with_a_newer_schema_is_refused(empty, plant):
    migrate(empty, root=plant(2))
    before = dump(empty)
    with pytest.raises(SchemaTooNewError, match="has schema 2, and this menzil only knows 1") as caught:
        migrate(empty, root=plant(1))
    assert "upgrade the menzil package" in caught.value.hint
    assert dump(empty) == before


def test_edited_migration_is_refused(empty, plant):
    root = plant(2)
    migrate(empty, root=root)
    file = root / "migrations/0001_first.sql"
    file.write_text(file.read_text() + "-- one more word\n")
    with pytest.raises(MigrationChangedError, match="0001_first is not the one") as caught:
        migrate(empty, root=root)
    assert "never change" in caught.value.hint


def test_failing_migration_leaves_the_steps_before_it(empty, plant):
    root = plant(2)
    broken = root / "migrations/0002_second.sql"
    good = broken.read_text()
    broken.write_text(good + "select 1 / 0;\n")
    with pytest.raises(InstallError, match=r"at migrations/0002_second\.sql: division by zero"):
        migrate(empty, root=root)
    assert value(empty, "select array_agg(version) from menzil.migration") == [1]
    assert value(empty, "select to_regclass('menzil.more')") is None
    broken.write_text(good)
    assert migrate(empty, root=root).applied == LABELS[1:]


def test_failing_function_names_its_file_and_line(empty, plant):
    root = plant(2)
    (root / "functions/wrong.sql").write_text(
        "-- one\n\ncreate function menzil.wrong() returns no_such_type\n  as '';\n"
    )
    with pytest.raises(InstallError, match=r"at functions/wrong\.sql"):
        migrate(empty, root=root)
    (root / "functions/wrong.sql").write_text("-- one\n\ncreate functoin menzil.wrong();\n")
    with pytest.raises(InstallError, match=r"at functions/wrong\.sql line 3: syntax error"):
        migrate(empty, root=root)
    assert value(empty, "select count(*) from menzil.installed_code") == 0


def test_callers_connection_keeps_its_settings(empty, plant):
    names = ["search_path", "lock_timeout", "statement_timeout", "check_function_bodies", "role"]
    with psycopg.connect(empty) as conn:
        before = [conn.execute(f"show {name}").fetchone() for name in names]
        conn.rollback()
        migrate(conn, root=plant(2))
        assert conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert [conn.execute(f"show {name}").fetchone() for name in names] == before
        with pytest.raises(UsageError, match="inside a transaction"):
            migrate(conn, root=plant(2))
    assert value(empty, "select count(*) from menzil.migration") == 2


def test_unreachable_server_is_one_sentence(tmp_path: Path):
    with pytest.raises(ConnectionFailedError) as caught:
        migrate(f"host={tmp_path} dbname=nowhere")
    assert caught.value.message.startswith("The server cannot be reached: ")
    assert len(caught.value.message.splitlines()) == 1


def test_role_with_create_on_the_database_is_enough(empty, plain, plant, toy_role, suffix):
    with psycopg.connect(empty) as admin:
        admin.execute(f"grant create on database install_one to plain_{suffix}")
    lines: list[str] = []
    report = migrate(plain, root=plant(2), progress=lines.append)
    assert report.to_version == 2
    assert report.notices == [f"role {toy_role} was not made (make it and migrate again)"]
    assert f"notice: role {toy_role} was not made (make it and migrate again)" in lines
    assert not migrate(plain, root=plant(2)).changed


def test_the_package_needs_no_superuser(empty, plain, suffix):
    with psycopg.connect(empty) as admin:
        admin.execute(f"grant create on database install_one to plain_{suffix}")
    assert migrate(plain).code_applied
    assert not migrate(plain).changed
    # Nor does an administrator who comes later take anything away from the owner.
    assert migrate(empty, reapply=True).code_applied
    assert migrate(plain, reapply=True).code_applied


def test_owner_who_may_not_make_the_schema_of_the_lake_again_is_told_who_may(empty, plain, suffix):
    with psycopg.connect(empty) as admin:
        admin.execute(f"grant create on database install_one to plain_{suffix}")
        admin.commit()
        migrate(plain)
        admin.execute(f"revoke create on database install_one from plain_{suffix}")
        admin.execute("drop schema menzil_lake cascade")  # as `pg_dump -n menzil` leaves it out
    with pytest.raises(PermissionDeniedError, match="may not create the schema menzil_lake") as caught:
        migrate(plain)
    assert caught.value.hint == f"let an administrator run: create schema menzil_lake authorization plain_{suffix}"


def test_role_made_later_gets_its_grants_on_the_next_run(empty, plain, plant, toy_role, suffix):
    with psycopg.connect(empty) as admin:
        admin.execute(f"grant create on database install_one to plain_{suffix}")
        admin.commit()
        migrate(plain, root=plant(2))
        admin.execute(f"create role {toy_role}")
        admin.commit()
        assert migrate(plain, root=plant(2)).code_applied
        granted = admin.execute("select has_table_privilege(%s, 'menzil.toys', 'select')", [toy_role]).fetchone()
    assert granted == (True,)


def test_role_without_create_gets_one_sentence(plain, plant, suffix):
    with pytest.raises(PermissionDeniedError) as caught:
        migrate(plain, root=plant(2))
    assert caught.value.message == f"Role plain_{suffix} may not create schema menzil in database install_one."
    assert "grant create on database install_one" in caught.value.hint


def test_schema_made_by_an_administrator_is_enough(empty, plain, plant, suffix):
    with psycopg.connect(empty) as admin:
        admin.execute(f"create schema menzil authorization plain_{suffix}")
    assert migrate(plain, root=plant(2)).to_version == 2


def test_stranger_may_not_migrate_what_is_not_his(empty, plain, plant):
    migrate(empty, root=plant(1))
    with pytest.raises(PermissionDeniedError, match="may not read what is installed") as caught:
        migrate(plain, root=plant(2))
    assert "who installed menzil" in caught.value.hint


def test_administrator_upgrades_in_the_name_of_the_owner(empty, plain, plant, suffix):
    with psycopg.connect(empty) as admin:
        admin.execute(f"grant create on database install_one to plain_{suffix}")
    migrate(plain, root=plant(1))
    migrate(empty, root=plant(2))
    with psycopg.connect(empty) as conn:
        owners = conn.execute(
            "select distinct relowner::regrole::text from pg_class where relnamespace = 'menzil'::regnamespace"
            " union select distinct proowner::regrole::text from pg_proc where pronamespace = 'menzil'::regnamespace"
        ).fetchall()
    assert owners == [(f"plain_{suffix}",)]
    assert not migrate(plain, root=plant(2)).changed
