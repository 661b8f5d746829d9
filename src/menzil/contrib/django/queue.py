"""Send from Django code: a row of the transaction that is open on the database of MENZIL."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack

from django.db import connections

from menzil.contrib.django import conf
from menzil.model.options import SendOptions
from menzil.ops import sending
from menzil.ops.borrow import run_on
from menzil.ops.op import Op

T = TypeVar("T")


def send(channel: str, payload: Any, *, using: str | None = None, **options: Unpack[SendOptions]) -> int:
    """Send a message in the transaction of the caller, and return its id. Rolled back: nothing is sent.

    The options are those of menzil.Menzil.send: priority, delay, idempotency_key, ordering_key and others.
    `using` is the alias of another database than MENZIL["DATABASE"].
    """
    return run_in(using or conf.database(), sending.send(channel, payload, **options))


def run_in(alias: str, op: Op[T]) -> T:
    """Run an Op on Django's connection; errors of the driver become those of django.db, as with every query."""
    connection = connections[alias]
    with connection.wrap_database_errors:
        return run_on(connection, op)
