"""`menzil schedule`: messages that repeat."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.names import page, page_options
from menzil.cli.show import json_option, say
from menzil.model.errors import PermissionDeniedError
from menzil.ops import looking, schedules


@click.group()
def schedule() -> None:
    """Look at and change messages that repeat."""


@schedule.command("list")
@page_options
@json_option
@on_database
def list_schedules(db: Database, limit: int, after: str, as_json: bool) -> None:
    """List schedules by name."""
    try:
        found = db.run(looking.schedules(limit + 1, after))
    except PermissionDeniedError:  # menzil_monitor sees when they send, not what
        found = db.run(looking.schedules(limit + 1, after, bodies=False))
    columns = ["name", "cron", "time_zone", "endpoint_name", "paused", "next_at", "last_slot_at", "last_error"]
    empty = "There are no schedules. Make one with `menzil schedule create NAME CRON CHANNEL`."
    page(found, columns, limit, as_json=as_json, empty=empty)


@schedule.command()
@click.argument("name")
@click.argument("cron")
@click.argument("channel")
@click.argument("body", required=False)
@click.option("--time-zone", default="UTC", show_default=True, help="In which CRON is meant.")
@click.option("--priority", type=int, default=0)
@click.option("--ordering-key", metavar="KEY")
@click.option("--expires", "expires_after", type=given.seconds, metavar="DURATION", help="A late message is not sent.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE")
@click.option("--metadata", type=given.json_object("metadata"), metavar="JSON")
@on_database
def create(
    db: Database, name: str, cron: str, channel: str, body: str | None, headers: tuple[str, ...], **options: Any
) -> None:
    """Send BODY to CHANNEL whenever CRON says.

    CRON has five fields, such as "*/5 * * * *". Prints the id of the schedule.
    """
    payload: Any = {} if body is None else given.json_value("body")(body)
    options["headers"] = given.headers(headers)
    click.echo(db.run(schedules.schedule_create(name, cron, channel, payload, dumps=given.dumps, **options)))


@schedule.command()
@click.argument("name")
@on_database
def pause(db: Database, name: str) -> None:
    """Skip slots until it is resumed."""
    db.run(schedules.schedule_pause(name))
    say(f"Schedule {name} is paused.")


@schedule.command()
@click.argument("name")
@on_database
def resume(db: Database, name: str) -> None:
    """Go on with the next slot."""
    db.run(schedules.schedule_resume(name))
    say(f"Schedule {name} goes on.")


@schedule.command()
@click.argument("name")
@on_database
def drop(db: Database, name: str) -> None:
    """Remove a schedule."""
    db.run(schedules.schedule_drop(name))
    say(f"Schedule {name} is gone.")
