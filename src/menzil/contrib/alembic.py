"""Alembic: menzil's schema as a step of your migrations, and autogenerate kept away from it.

A revision calls upgrade(op). It brings the database to the schema of the installed release, in the transaction of the
migration, and skips what is there; so does every later revision that calls it again after an upgrade of menzil.
Revisions that `menzil sql upgrade --alembic` prints carry their SQL with them and call execute(op, SQL).
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any

from sqlalchemy import text
from sqlalchemy.util import await_only

from menzil.install import books, script
from menzil.model.errors import UsageError
from menzil.model.version import SCHEMA_VERSION_KNOWN

LOGGER = logging.getLogger("menzil.alembic")

#: Schemas that are menzil's own.
SCHEMAS = ("menzil", "menzil_lake")


def upgrade(op: Any, *, schema: int | None = None) -> None:
    """Install menzil, or bring it up to date. `schema` refuses a release of menzil that is older than that schema."""
    if schema is not None and schema > SCHEMA_VERSION_KNOWN:
        sentence = (
            f"This migration needs schema {schema} of menzil, and the installed release has {SCHEMA_VERSION_KNOWN}."
        )
        raise UsageError(sentence, hint="pip install --upgrade menzil")
    execute(op, script("upgrade", transaction=False))


def execute(op: Any, body: str) -> None:
    """Run the SQL that `menzil sql upgrade --alembic` has printed, in the transaction of the migration."""
    context = op.get_context()
    if context.as_sql:  # alembic upgrade --sql
        resets = "".join(f"set local {name} to default;\n" for name in _settings() if name != "transaction_timeout")
        context.impl.static_output(f"{body}\n{resets}")
        return
    _run(op.get_bind(), body)


def downgrade(op: Any) -> None:
    """Leave menzil as it is: its migrations go forward only, and its messages are data."""
    del op
    LOGGER.warning("menzil's schema stays as it is; `menzil sql uninstall` prints what removes it with all messages.")


def include_name(name: str | None, type_: str, parent_names: Any = None) -> bool:
    """For context.configure(include_name=…): False for menzil's schemas, so that autogenerate does not read them."""
    del parent_names
    return not (type_ == "schema" and name in SCHEMAS)


def include_object(object_: Any, name: str | None, type_: str, reflected: bool = False, compare_to: Any = None) -> bool:
    """For context.configure(include_object=…): False for tables of menzil's schemas, also those of `tables`."""
    del name, reflected, compare_to
    table = object_ if type_ == "table" else getattr(object_, "table", None)
    return getattr(table, "schema", None) not in SCHEMAS


def _settings() -> list[str]:
    """What the script sets for its transaction, and what must be again as it was for the migrations after it."""
    return ["role", *sorted({*re.findall(r"^set local (\w+)", books.text("session"), re.M), "transaction_timeout"})]


def _run(bind: Any, body: str) -> None:
    if bind.dialect.name != "postgresql":
        raise UsageError(f"This migration runs on {bind.dialect.name}, and menzil needs PostgreSQL.")
    raw = bind.connection
    if getattr(raw.dbapi_connection, "autocommit", False) is True:
        raise UsageError(
            "This migration runs in autocommit, and menzil's needs a transaction.",
            hint="call upgrade(op) outside of autocommit_block()",
        )
    # Also begins the transaction, where the driver begins one with the first statement.
    asked = text(
        "select name, current_setting(name, true) from unnest(cast(:names as text[])) name "
        "where current_setting(name, true) is not null"
    )
    before = bind.execute(asked, {"names": _settings()}).all()
    _execute(raw, body)
    # PostgreSQL says the same as a notice, which Alembic does not show. An index of a table with rows would lock it.
    left = bind.execute(text("select count(*) from menzil._missing_indexes()")).scalar_one()
    if left:
        LOGGER.warning("%s indexes of menzil are left to build: run `menzil migrate` after this migration.", left)
    for name, value in before:
        bind.execute(text("select set_config(:name, :value, true)"), {"name": name, "value": value})


def _execute(raw: Any, body: str) -> None:
    """Execute many statements at once, which SQLAlchemy's own ways would prepare as one."""
    driver = raw.driver_connection
    execute: Callable[[str], Any] | None = getattr(driver, "execute", None)
    if execute is not None and iscoroutinefunction(execute):  # asyncpg, and psycopg's async connections
        done: Awaitable[Any] = execute(body)
        await_only(done)
        return
    cursor = raw.cursor()
    try:
        cursor.execute(body)
    finally:
        cursor.close()
