"""System checks: mistakes in settings.py that would otherwise show in production."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import psycopg
from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections

from menzil.contrib.django import conf
from menzil.contrib.django.queue import run_in
from menzil.install import check as handshake
from menzil.model.errors import MenzilError, SchemaMissingError, SchemaTooOldError
from menzil.ops import looking_tasks

if find_spec("django.tasks") and find_spec("django.tasks.checks"):
    # Django 6 has a check of TASKS that nothing imports, so that `manage.py check` passed over misspelled OPTIONS.
    import_module("django.tasks.checks")


@register()
def check_settings(app_configs: Any = None, **given: Any) -> list[CheckMessage]:
    """Look at MENZIL, at its database, and at the queues of TASKS."""
    said = getattr(settings, "MENZIL", {})
    if not isinstance(said, dict):
        hint = 'Write MENZIL = {"DATABASE": "default"}.'
        return [Error(f"MENZIL is a {type(said).__name__}, not a dict.", hint=hint, id="menzil.E001")]
    found: list[CheckMessage] = [
        Error(f"MENZIL has the unknown key {key!r}.", hint=conf.nearest(key, conf.KEYS), id="menzil.E002")
        for key in said
        if key not in conf.KEYS
    ]
    if isinstance(said.get("REDACT", []), str):
        found.append(Error("MENZIL['REDACT'] is a list of patterns, not one text.", id="menzil.E002"))
    alias = conf.database()
    if alias not in connections:
        sentence = f"MENZIL names the database {alias!r}, which is not in DATABASES."
        return [*found, Error(sentence, hint=conf.nearest(alias, connections), id="menzil.E003")]
    return [*found, *_database(alias), *_tasks()]


def _database(alias: str) -> Iterator[CheckMessage]:
    connection = connections[alias]
    chosen = connection.settings_dict
    if connection.vendor != "postgresql":
        hint = "Name a PostgreSQL database in MENZIL['DATABASE']."
        yield Error(f"The database {alias!r} is {connection.vendor}, not PostgreSQL.", hint=hint, id="menzil.E004")
        return
    if not chosen.get("AUTOCOMMIT", True):
        yield Warning(
            f"AUTOCOMMIT of the database {alias!r} is off.",
            hint="A message that is sent outside atomic() is then lost unless the program commits. Leave it on.",
            id="menzil.W001",
        )
    pool = chosen.get("OPTIONS", {}).get("pool")
    if chosen.get("CONN_MAX_AGE", 0) != 0 and not chosen.get("CONN_HEALTH_CHECKS") and not pool:
        yield Warning(
            f"The database {alias!r} keeps connections (CONN_MAX_AGE) and does not check them.",
            hint="After a restart of PostgreSQL each thread fails one message. Set CONN_HEALTH_CHECKS to True.",
            id="menzil.W002",
        )
    elif chosen.get("CONN_MAX_AGE", 0) == 0 and not pool and conf.backends():
        yield Info(
            f"A worker opens a new connection to {alias!r} for each task that uses the ORM.",
            hint="CONN_MAX_AGE = 60 with CONN_HEALTH_CHECKS = True keeps them between tasks.",
            id="menzil.I001",
        )


def _tasks() -> Iterator[CheckMessage]:
    if not conf.has_tasks():
        given = getattr(settings, "TASKS", {})
        ours = [alias for alias, one in given.items() if str(one.get("BACKEND")).startswith("menzil.")]
        if ours:
            yield Error(
                f"TASKS[{ours[0]!r}] names a backend, and this Django has no tasks.",
                hint="pip install django-tasks, or upgrade to Django 6.",
                id="menzil.E009",
            )
        return
    backends = conf.backends()
    queues = Counter((backend.database, queue) for backend in backends for queue in backend.queues)
    for (database, queue), count in queues.items():
        if count > 1:
            yield Error(
                f"{count} backends of TASKS have the queue {queue!r} in the database {database!r}.",
                hint="A queue is one channel. Give each backend queues of its own.",
                id="menzil.E008",
            )
    if backends:
        from menzil.contrib.django.api import ROOT

        if ROOT == "django_tasks" and not apps.is_installed(ROOT):
            yield Warning(
                "'django_tasks' is not in INSTALLED_APPS, so mistakes in TASKS are not looked for.",
                hint="Add 'django_tasks' to INSTALLED_APPS.",
                id="menzil.W005",
            )


@register(Tags.database)
def check_schema(databases: Any = None, **given: Any) -> list[CheckMessage]:
    """Look whether the schema is there and fits. Warnings, not errors: `manage.py migrate` runs this check first."""
    return [
        said
        for alias in sorted(conf.databases() & set(databases or ()))
        if alias in connections and connections[alias].vendor == "postgresql"
        for said in _schema(alias)
    ]


def _schema(alias: str) -> Iterator[CheckMessage]:
    try:
        with psycopg.connect(conf.dsn(alias), autocommit=True) as conn:
            error: MenzilError | None = handshake(conn).error()
    except (psycopg.Error, ImproperlyConfigured):
        return  # Django itself says it when it cannot connect
    except MenzilError as refused:
        error = refused
    if error is not None:
        verbs: dict[type[MenzilError], str] = {SchemaMissingError: "installs", SchemaTooOldError: "upgrades"}
        verb = verbs.get(type(error))
        hint = error.hint if verb is None else f"manage.py migrate {verb} it."
        yield Warning(error.message, hint=hint, id="menzil.W003")
        return
    if not any(backend.database == alias for backend in conf.backends()):
        return
    try:
        kept = run_in(alias, looking_tasks.archives())
    except (DatabaseError, MenzilError):
        return  # a role that may only send
    if not kept:
        yield Warning(
            "The setting archive_completed is off: results of tasks are gone seconds after they succeed.",
            hint="Run manage.py menzil settings set archive_completed true.",
            id="menzil.W004",
        )
