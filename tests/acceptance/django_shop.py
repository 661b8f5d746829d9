"""A Django program as a worker: `menzil worker django_shop:app`."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import django
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections
from psycopg.conninfo import conninfo_to_dict

import menzil

_parts = conninfo_to_dict(os.environ["MENZIL_DSN"])
_database = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": _parts["dbname"],
    "USER": _parts["user"],
    "PASSWORD": _parts.get("password", ""),
    "HOST": _parts["host"],
    "PORT": _parts["port"],
    "CONN_MAX_AGE": None if os.environ.get("KEEP") else 0,
    "OPTIONS": {"application_name": "django-shop"},
}
settings.configure(DATABASES={"default": _database, "shop": _database}, USE_TZ=True)
django.setup()

from django.db import models  # noqa: E402


class Effect(models.Model):
    """One row per message handled."""

    id = models.BigIntegerField(primary_key=True)

    class Meta:
        app_label = "shop"
        db_table = "effect"
        managed = False


app = menzil.Worker(endpoints=False)


@app.handler("book", transaction="django:shop")
def book(message: menzil.Message) -> menzil.Outcome | None:
    Effect.objects.using("shop").create(id=message.id)
    if message.payload == "raise":
        raise ValueError("no")
    if message.payload == "fail":
        return menzil.Fail("no", retry=False)
    if message.payload == "defer" and message.state is None:
        return menzil.Defer(seconds=3600, state=b"half")
    if message.payload == "late":  # the lease is gone when the handler returns
        with connections["default"].cursor() as cursor:
            cursor.execute("delete from menzil.lease where %s between lo_id and hi_id", [message.id])
    return None


@app.handler("plain")
def plain(message: menzil.Message) -> None:
    Effect.objects.create(id=message.id)


@app.handler("awaited")
async def awaited(message: menzil.Message) -> None:
    await Effect.objects.acreate(id=message.id)


@app.handler("blocking")
async def blocking(message: menzil.Message) -> None:
    """Keep the thread of the ORM until the gate opens."""
    trace("begun")
    await sync_to_async(wait)()


@app.handler("thinking")
async def thinking(message: menzil.Message) -> None:
    """Never ask the ORM."""
    if message.payload == "raise":
        raise ValueError("no")


_slots = set[object]()


@app.handler("counted", concurrency=1)
async def counted(message: menzil.Message) -> None:
    _slots.add(asyncio.current_task())
    trace(len(_slots))


def wait() -> None:
    gate, pause = Path(os.environ["GATE"]), threading.Event()
    while not gate.exists():
        pause.wait(0.01)


def trace(word: object) -> None:
    with Path(os.environ["TRACE"]).open("a") as file:
        file.write(f"{word}\n")


reporting = menzil.Worker(endpoints=False)


@reporting.handler("raising")
async def raising(message: menzil.Message) -> None:
    raise ValueError("to be reported")


@reporting.on_error
def report(message: menzil.Message, error: BaseException) -> None:
    Effect.objects.create(id=message.id)
