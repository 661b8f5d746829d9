"""OPTIONS of a task backend: which there are, and what is wrong with those that settings.py gives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error
from django.db import connections

from menzil.contrib.django.conf import nearest

DEFAULTS: dict[str, Any] = {
    "database": None,  # MENZIL["DATABASE"]
    "lease": None,  # seconds until a silent worker loses a task; the worker's own, 30
    "concurrency": None,  # tasks of this backend at once in a worker; its threads, 10
    "create_channels": True,
    "max_retries": 0,  # as Django documents it: an exception ends the task
}


def check(backend: Any) -> Iterator[CheckMessage]:
    """Say what is wrong with one backend."""
    where = f"TASKS[{backend.alias!r}]"
    for name in backend.options.keys() - DEFAULTS.keys():
        yield Error(f"{where} has the unknown option {name!r}.", hint=nearest(name, DEFAULTS), id="menzil.E005")
    yield from _values(where, backend.options)
    if not backend.queues:
        yield Error(
            f"{where} has no QUEUES, so a worker would not know which channels to serve.",
            hint='Write "QUEUES": ["default"].',
            id="menzil.E007",
        )
    if backend.options["database"] is None:
        return  # MENZIL's, which has a check of its own
    if backend.database not in connections:
        hint = nearest(backend.database, connections)
        yield Error(
            f"{where} uses the database {backend.database!r}, which is not in DATABASES.", hint, id="menzil.E003"
        )
    elif connections[backend.database].vendor != "postgresql":
        vendor = connections[backend.database].vendor
        hint = 'Give OPTIONS a "database" that is PostgreSQL.'
        yield Error(f"{where} uses {backend.database!r}, which is {vendor} and not PostgreSQL.", hint, id="menzil.E004")


def _values(where: str, options: dict[str, Any]) -> Iterator[CheckMessage]:
    lease, concurrency = options["lease"], options["concurrency"]
    if lease is not None and (isinstance(lease, bool) or not isinstance(lease, int | float) or lease < 1):
        yield Error(f"{where}: lease must be a number of seconds, 1 or more, not {lease!r}.", id="menzil.E006")
    if concurrency is not None and (type(concurrency) is not int or concurrency < 1):
        yield Error(f"{where}: concurrency must be a whole number, 1 or more, not {concurrency!r}.", id="menzil.E006")
    if type(options["max_retries"]) is not int or options["max_retries"] < 0:
        said = options["max_retries"]
        yield Error(f"{where}: max_retries must be a whole number, 0 or more, not {said!r}.", id="menzil.E006")
    if type(options["create_channels"]) is not bool:
        said = options["create_channels"]
        yield Error(f"{where}: create_channels must be True or False, not {said!r}.", id="menzil.E006")
