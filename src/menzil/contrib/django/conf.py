"""What settings.py says: MENZIL, and the databases that menzil uses."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from psycopg.conninfo import make_conninfo

from menzil.ops.dsn import Dsn

#: What MENZIL may hold.
KEYS = ("DATABASE", "REDACT", "CONSOLE_URL")
#: The packages that have the task API, in the order they are looked for.
TASKS = ("django.tasks", "django_tasks")
_LIBPQ = frozenset(one.keyword.decode() for one in psycopg.pq.Conninfo.get_defaults())


def said(key: str, default: Any = None) -> Any:
    """Return the value of one key of MENZIL."""
    given = getattr(settings, "MENZIL", {})
    return given.get(key, default) if isinstance(given, dict) else default  # a check says that it must be a dict


def database() -> str:
    """Return the alias of the database that menzil uses."""
    return str(said("DATABASE", "default"))


def databases() -> set[str]:
    """Return the aliases of all databases that need the schema: MENZIL's, and those of task backends."""
    return {database(), *(backend.database for backend in backends())}


def has_tasks() -> bool:
    """Whether this Django has tasks, or the backport is installed."""
    return any(find_spec(name) is not None for name in TASKS)


def backends() -> list[Any]:
    """Return the task backends of TASKS that are ours; none where Django has no tasks."""
    if not has_tasks():
        return []
    from menzil.contrib.django import api

    found: Iterable[Any] = api.task_backends.all()
    return [backend for backend in found if getattr(backend, "is_menzil", False)]


def dsn(alias: str) -> Dsn:
    """Return the connection string of a database of Django, also of the one that `manage.py test` made."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ImproperlyConfigured(
            f"The database {alias!r} is {connection.vendor}; menzil needs PostgreSQL. See MENZIL['DATABASE']."
        )
    params = {name: value for name, value in connection.get_connection_params().items() if name in _LIBPQ}
    role = connection.settings_dict.get("OPTIONS", {}).get("assume_role")
    if role:  # Django says SET ROLE on its own connections
        params["options"] = f"{params.get('options') or ''} -c role={role}".strip()
    return Dsn(make_conninfo(**params), f"the database {alias!r} of Django's settings")


def nearest(word: object, words: Iterable[str]) -> str | None:
    """Return "Did you mean …?", or None."""
    known = list(words)
    lowered = {one.lower(): one for one in known}
    near = get_close_matches(str(word).lower(), lowered, 1)
    return f"Did you mean {lowered[near[0]]!r}?" if near else f"It may be one of {', '.join(sorted(known))}."
