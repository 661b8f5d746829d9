"""What may be said about a message, whether it is sent or published."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

import click

from menzil.cli import given
from menzil.cli.database import Database

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--priority", type=int, default=0, help="0 to 10; higher goes first."),
    click.option("--ordering-key", metavar="KEY", help="Messages of one key go one after the other."),
    click.option("--idempotency-key", metavar="KEY", help="A second one with this key is the first one."),
    click.option("--delay", type=given.seconds, metavar="DURATION", help="Not before so much time has passed."),
    click.option("--at", "scheduled_at", type=given.when, metavar="TIME", help="Not before this time."),
    click.option("--expires", "expires_in", type=given.seconds, metavar="DURATION", help="Not after so much time."),
    click.option("--correlation-id", metavar="UUID"),
    click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="May be given several times."),
    click.option("--metadata", type=given.json_object("metadata"), metavar="JSON", help="Kept with the message."),
)


def message_options(command: Command) -> Command:
    """Give a click command all options of a message."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def chosen(db: Database, *, scheduled_at: datetime | timedelta | None, headers: tuple[str, ...], **rest: Any) -> Any:
    """Return what was said, in the words of menzil.model.options."""
    said = {**rest, "scheduled_at": db.moment(scheduled_at), "headers": given.headers(headers)}
    return {name: value for name, value in said.items() if value is not None and (name, value) != ("priority", 0)}
