"""A small SQL tree with everything the installer handles, in two releases."""

from __future__ import annotations

from pathlib import Path

MIGRATIONS = {
    "0001_first.sql": """
create table menzil.toy (id integer primary key);
create index toy_down on menzil.toy (id desc);
""",
    "0002_second.sql": """
alter table menzil.toy add column note text not null default '$$';
do $$ begin execute 'create table menzil.more (id integer)'; end $$;
""",
}
LABELS = ["0001_first", "0002_second"]

FUNCTIONS = {
    # Sorted by path it comes before the function it calls and the table type it returns: order must not matter.
    "functions/count_toys.sql": """
create or replace function menzil.count_toys() returns bigint language sql stable
as $$ select count(*) + menzil.one() - 1 from menzil.toy $$;
""",
    "functions/deep/one.sql": """
drop function if exists menzil.one();
create function menzil.one() returns integer language sql immutable as $$ select 1 $$;
""",
    "views/toys.sql": "drop view if exists menzil.toys;\ncreate view menzil.toys as select id from menzil.toy;\n",
}

ROLES = """
do $$
begin
  if not exists (select from pg_roles where rolname = '{role}') then
    create role {role} nologin;
  end if;
  grant usage on schema menzil to {role};
  grant select on menzil.toys to {role};
exception when insufficient_privilege then
  raise notice 'role {role} was not made' using hint = 'make it and migrate again';
end
$$;
"""


def plant(root: Path, *, role: str, releases: int = 2) -> Path:
    """Write the tree as it was after so many releases."""
    files = {f"migrations/{name}": text for name, text in list(MIGRATIONS.items())[:releases]}
    for name, text in {**files, **FUNCTIONS, "roles.sql": ROLES.format(role=role)}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root
