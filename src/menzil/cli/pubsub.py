"""`menzil event-type`, `subscribe`, `unsubscribe`, `subscription` and `publish`: one event, many readers."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.names import knowing_names, limit_option, page, page_options
from menzil.cli.options import chosen, message_options
from menzil.cli.show import count, document, json_option, say
from menzil.model.errors import UnknownNameError, UsageError
from menzil.ops import looking, pubsub
from menzil.watch.names import MOST_NAMES


@click.group("event-type")
def event_type() -> None:
    """Look at and change the kinds of events that can be published."""


@event_type.command("list")
@page_options
@json_option
@on_database
def list_event_types(db: Database, limit: int, after: str, as_json: bool) -> None:
    """List event types by name."""
    found = db.run(looking.event_types(limit + 1, after))
    rows = found if as_json else [{**one, "has_schema": one["schema"] is not None} for one in found]
    empty = "There are no event types. Make one with `menzil event-type create NAME`."
    page(rows, ["name", "has_schema", "created_at", "description"], limit, as_json=as_json, empty=empty)


@event_type.command()
@click.argument("name")
@click.option("--description", metavar="TEXT")
@click.option(
    "--schema", type=given.json_object("schema"), metavar="JSON|@FILE", help="A JSON Schema that payloads obey."
)
@on_database
def create(db: Database, name: str, description: str | None, schema: dict[str, Any] | None) -> None:
    """Make an event type, or describe it anew."""
    db.run(pubsub.create_event_type(name, description, schema))
    say(f"Event type {name} can be published.")


@event_type.command()
@click.argument("name")
@on_database
def drop(db: Database, name: str) -> None:
    """Remove an event type and its subscriptions."""
    db.run(pubsub.drop_event_type(name))
    say(f"Event type {name} is gone.")


@click.group()
def subscription() -> None:
    """Look at who gets which events."""


@subscription.command("list")
@click.option("--event-type", metavar="NAME")
@click.option("--endpoint", metavar="NAME")
@click.option("--after", type=int, default=0, metavar="ID", help="Go on behind this id.", show_default=False)
@limit_option
@json_option
@on_database
def list_subscriptions(
    db: Database, event_type: str | None, endpoint: str | None, after: int, limit: int, as_json: bool
) -> None:
    """List subscriptions."""
    if endpoint is not None:
        with knowing_names(db, endpoint):
            if db.run(looking.channel(endpoint)) is None:
                raise UnknownNameError(f"There is no channel or endpoint named {endpoint!r}.")
    found = db.run(looking.subscriptions(limit + 1, after, event_type=event_type, endpoint=endpoint))
    if event_type is not None and not found:
        known = [one["name"] for one in db.run(looking.event_types(MOST_NAMES))]
        if event_type not in known and len(known) < MOST_NAMES:
            hint = "`menzil event-type list` shows them all"
            raise UnknownNameError(f"There is no event type named {event_type!r}.", hint=hint)
    columns = ["id", "event_type", "endpoint_name", "filter", "created_at"]
    empty = "There are no such subscriptions. Make one with `menzil subscribe EVENT_TYPE ENDPOINT`."
    page(found, columns, limit, as_json=as_json, empty=empty, key="id")


@click.command()
@click.argument("event_type")
@click.argument("endpoint")
@click.option(
    "--filter", "filter_", type=given.json_object("filter"), metavar="JSON", help="What a payload must contain."
)
@on_database
def subscribe(db: Database, event_type: str, endpoint: str, filter_: dict[str, Any] | None) -> None:
    """Let ENDPOINT get every event of EVENT_TYPE, and print the id of the subscription."""
    click.echo(db.run(pubsub.subscribe(event_type, endpoint, filter_)))


@click.command()
@click.argument("words", metavar="ID | EVENT_TYPE ENDPOINT", nargs=-1, required=True)
@on_database
def unsubscribe(db: Database, words: tuple[str, ...]) -> None:
    """End one subscription, or all of an endpoint to an event type."""
    match words:
        case (number,) if number.isdecimal():
            ended = db.run(pubsub.unsubscribe(int(number)))
        case (event_type, endpoint):
            ended = db.run(pubsub.unsubscribe(event_type, endpoint))
        case _:
            hint = "write the id of a subscription, or an event type and an endpoint"
            raise UsageError("Which subscription?", hint=hint)
    say(f"Ended {count(ended, 'subscription')}.")


@click.command()
@click.argument("event_type")
@click.argument("body", required=False)
@message_options
@json_option
@on_database
def publish(db: Database, event_type: str, body: str | None, as_json: bool, **options: Any) -> None:
    """Send BODY to all subscribers of EVENT_TYPE, and print how many messages that made.

    BODY is JSON, @FILE for the contents of a file, or - for standard input; without it the event is an empty object.
    """
    payload: Any = {} if body is None else given.json_value("body")(body)
    made = db.run(pubsub.publish(event_type, payload, dumps=given.dumps, **chosen(db, **options)))
    if as_json:
        document({"messages": made})
    else:
        click.echo(made)
