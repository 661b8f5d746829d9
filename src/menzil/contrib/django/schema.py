"""The schema of menzil in Django's migrations.

A migration of this app calls menzil.install.migrate on a connection of its own, outside Django's transaction
(`atomic = False`). menzil's installer takes its locks in short transactions and gives way to workers; inside one
transaction of Django it would hold all of them until the end, and `create index concurrently` could not run. Each
migration brings the newest schema that the installed package knows, so a database where `menzil migrate` was run
before has nothing left to do. A migration per schema version tells Django that there is something to run.

Functions and views change without a new version of the schema. So `manage.py migrate` applies them afterwards where
they are not those of this package.
"""

from __future__ import annotations

import sys
from typing import Any

import psycopg
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, router
from django.db.migrations.operations.base import Operation

from menzil.contrib.django import conf
from menzil.contrib.django.queue import run_in
from menzil.install import migrate, script
from menzil.install.state import read
from menzil.install.tree import load
from menzil.model.errors import MenzilError
from menzil.ops import channels, looking_tasks


class BringSchema(Operation):
    """Install menzil, or bring it up to date, in the databases that settings.py names for it."""

    reduces_to_sql = True
    reversible = True

    def __init__(self, version: int) -> None:
        self.version = version

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return (type(self).__name__, [self.version], {})

    def state_forwards(self, app_label: str, state: Any) -> None:
        """The models of the views are unmanaged and written beside this operation."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if not _wanted(schema_editor, app_label):
            return
        if schema_editor.collect_sql:  # manage.py sqlmigrate
            schema_editor.collected_sql.append(script("install"))
            return
        if schema_editor.connection.in_atomic_block:
            raise ImproperlyConfigured("The migrations of menzil cannot run inside a transaction.")
        bring(schema_editor.connection.alias)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if _wanted(schema_editor, app_label):
            sys.stderr.write(
                "\nmenzil stays installed: its migrations only go forward. "
                "`menzil sql uninstall` prints what removes it.\n"
            )

    def describe(self) -> str:
        return f"Bring the schema of menzil to version {self.version} or later"


class CreateChannel(Operation):
    """Make a channel, with the limits of menzil.Menzil.channel_set, in a migration of your app.

    Limits that are given replace those of a channel that is there; without limits such a channel stays as it is.
    Let the migration depend on ("menzil", "0001_schema_14"). Reversed, it leaves the channel: messages may be in it.
    """

    reversible = True

    def __init__(self, name: str, **limits: Any) -> None:
        self.name = name
        self.limits = limits

    def deconstruct(self) -> tuple[str, list[Any], dict[str, Any]]:
        return (type(self).__name__, [self.name], self.limits)

    def state_forwards(self, app_label: str, state: Any) -> None:
        """A channel is not a model."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        if _wanted(schema_editor, app_label):
            if schema_editor.collect_sql:
                schema_editor.collected_sql.append(f"-- menzil.channel_set for {self.name!r} is called here")
                return
            alias = schema_editor.connection.alias
            if self.limits or not run_in(alias, looking_tasks.has_channel(self.name)):
                run_in(alias, channels.channel_set(self.name, **self.limits))

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:
        """Leave it."""

    def describe(self) -> str:
        return f"Create channel {self.name}"


def _wanted(schema_editor: Any, app_label: str) -> bool:
    alias = schema_editor.connection.alias
    return alias in conf.databases() and bool(router.allow_migrate(alias, app_label))


def bring(alias: str, progress: Any = None) -> None:
    """Run menzil's installer on a connection of its own."""
    try:
        migrate(conf.dsn(alias), progress=progress)
    except MenzilError as error:
        # What `manage.py migrate` shows without a traceback of ours.
        raise DatabaseError(str(error)) from error


def bring_code(*, using: str, verbosity: int = 1, **given: Any) -> None:
    """Apply functions and views after `manage.py migrate`, where the database has others than this package."""
    # `flush`, which tests call often, sends the signal without a plan.
    if "plan" not in given or using not in conf.databases() or not router.allow_migrate(using, "menzil"):
        return
    try:
        with psycopg.connect(conf.dsn(using), autocommit=True) as conn:
            state = read(conn)
    except (psycopg.Error, MenzilError, ImproperlyConfigured):
        return  # what is wrong was said by the migration, or the app's migrations are not run here
    if state.version and not state.runs(load()):
        bring(using, (lambda line: sys.stdout.write(f"  menzil: {line}\n")) if verbosity else None)
