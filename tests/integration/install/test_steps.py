"""What a release leaves behind and what it prepares: functions that go, and copying before a migration."""

from __future__ import annotations

import psycopg
import pytest

from menzil.install import InstallError, Pace, migrate
from tests.integration.install.catalog import dump
from tests.integration.install.toy import LABELS


def value(dsn: str, query: str):
    with psycopg.connect(dsn) as conn:
        return conn.execute(query).fetchone()[0]


def routines(dsn: str) -> list[str]:
    query = "select proname::text from pg_proc where pronamespace = 'menzil'::regnamespace order by 1"
    with psycopg.connect(dsn) as conn:
        return [name for (name,) in conn.execute(query)]


def test_functions_that_the_code_no_longer_has_go(empty, plant):
    root = plant(2)
    (root / "functions/short_lived.sql").write_text(
        "create or replace function menzil.two() returns integer language sql return 2;\n"
        "create or replace function menzil.three() returns integer language sql return menzil.two() + 1;\n"
        "create or replace procedure menzil.walk() language sql as 'select 1';\n"
    )
    migrate(empty, root=root)
    with psycopg.connect(empty) as conn:
        conn.execute("create function menzil.mine() returns integer language sql as 'select 1'")
    assert migrate(empty, root=root, reapply=True).code_applied
    assert routines(empty) == ["count_toys", "mine", "one", "three", "two", "walk"]
    (root / "functions/short_lived.sql").unlink()
    # Two depend on each other, and what others put into the schema stays, however often the code is applied.
    for _ in range(2):
        assert migrate(empty, root=root, reapply=True).code_applied
        assert routines(empty) == ["count_toys", "mine", "one"]


def test_function_that_others_depend_on_stays_and_is_named(empty, plant):
    root = plant(2)
    for name in ("two", "three"):
        (root / f"functions/{name}.sql").write_text(
            f"create or replace function menzil.{name}() returns integer language sql as 'select 1';\n"
        )
    migrate(empty, root=root)
    with psycopg.connect(empty) as conn:
        conn.execute("create view public.mine as select menzil.two()")
    for name in ("two", "three"):
        (root / f"functions/{name}.sql").unlink()
    (notice,) = migrate(empty, root=root).notices
    assert notice == "menzil.two() is no longer part of menzil and stays because other objects depend on it"
    assert routines(empty) == ["count_toys", "one", "two"]
    with psycopg.connect(empty) as conn:
        conn.execute("drop view public.mine")
    assert migrate(empty, root=root, reapply=True).notices == []
    assert routines(empty) == ["count_toys", "one"]


def test_code_and_the_last_migration_are_one_transaction(empty, plant):
    migrate(empty, root=plant(1))
    root = plant(2)
    (root / "views/zz_broken.sql").write_text("create view menzil.broken as select * from menzil.nowhere;\n")
    before = dump(empty)
    with pytest.raises(InstallError, match=r"applying 0002_second at views/zz_broken\.sql"):
        migrate(empty, root=root)
    assert dump(empty) == before


def test_several_migrations_of_a_database_at_work_are_one_transaction(empty, plant):
    migrate(empty, root=plant(1))
    root = plant(2)
    (root / "migrations/0003_third.sql").write_text("select 1 / 0;\n")
    before = dump(empty)
    with pytest.raises(InstallError, match=r"0002_second and 0003_third at migrations/0003_third\.sql"):
        migrate(empty, root=root)
    assert dump(empty) == before
    (root / "migrations/0003_third.sql").write_text("create table menzil.third (id integer);\n")
    assert migrate(empty, root=root).applied == [*LABELS[1:], "0003_third"]


# Brought by the first migration: what the second one need not copy while all others wait.
COPYING = """
create table menzil.source as select n from generate_series(1, 25) n;
create table menzil.copy (n integer, xid xid8 default pg_current_xact_id());
create function menzil._before_0002(p_limit integer) returns bigint language sql as $$
  with copied as (
    insert into menzil.copy (n)
      select s.n from menzil.source s where not exists (select from menzil.copy c where c.n = s.n) limit p_limit
    returning 1)
  select count(*) from copied $$;
"""


def test_preparation_of_a_migration_runs_in_transactions_of_its_own(empty, plant):
    root = plant(2)
    first, second = root / "migrations/0001_first.sql", root / "migrations/0002_second.sql"
    first.write_text(first.read_text() + COPYING)
    second.write_text(second.read_text() + "drop function menzil._before_0002(integer);\n")
    lines: list[str] = []
    seen: list[int] = []

    def progress(line: str) -> None:
        lines.append(line)
        if line.startswith("preparing"):
            seen.append(value(empty, "select count(*) from menzil.copy"))

    assert migrate(empty, root=root, pace=Pace(rows=10), progress=progress).applied == LABELS
    assert seen == [10, 20, 25]
    assert value(empty, "select count(distinct xid::text) from menzil.copy") == 3
    assert [line.split(" rows")[0] for line in lines if line.startswith("preparing")] == [
        "preparing 0002_second: 10",
        "preparing 0002_second: 20",
        "preparing 0002_second: 25",
    ]


def test_preparation_goes_on_where_it_was_interrupted(empty, plant):
    root = plant(2)
    first, second = root / "migrations/0001_first.sql", root / "migrations/0002_second.sql"
    first.write_text(first.read_text() + COPYING)
    second.write_text(second.read_text() + "drop function menzil._before_0002(integer);\n")

    def interrupt(line: str) -> None:
        if line.startswith("preparing"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(empty, root=root, pace=Pace(rows=10), progress=interrupt)
    assert value(empty, "select count(*) from menzil.copy") == 10
    assert migrate(empty, root=root, pace=Pace(rows=10)).applied == LABELS[1:]
    assert value(empty, "select count(*) from menzil.copy") == 25
