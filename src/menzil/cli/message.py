"""`menzil message`: one message by its id, and lists of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from menzil.cli.body import show_body
from menzil.cli.database import Database, on_database
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.names import knowing_names, limit_option
from menzil.cli.show import document, fields, json_option, listing, say, table
from menzil.cli.timeline import lines
from menzil.model.errors import PermissionDeniedError
from menzil.model.message import Message
from menzil.ops import looking_messages, messages
from menzil.ops.looking_messages import STATUSES


@click.group()
def message() -> None:
    """Look at messages, cancel them, hurry them."""


@message.command()
@click.argument("message_id", metavar="ID", type=int)
@json_option
@on_database
def show(db: Database, message_id: int, as_json: bool) -> None:
    """Show a message and everything that happened to it, or its status where the role may not read messages."""
    try:
        found = db.run(looking_messages.live_message(message_id)) or db.run(looking_messages.ended_message(message_id))
    except PermissionDeniedError:  # menzil_application and menzil_worker may ask for the status alone
        status = asdict(db.run(messages.status(message_id)))
        document(status) if as_json else fields(status)
        return
    if found is None:
        db.run(messages.status(message_id))  # refuses an id that never was, or whose history is gone
        found = db.run(looking_messages.ended_message(message_id))  # or it ended just now
        assert found is not None
    attempts = db.run(looking_messages.attempts(message_id))
    if as_json:
        document({**found, "attempts": attempts})
        return
    names = ["id", "status", "channel", "priority", "ordering_key", "idempotency_key", "correlation_id", "expires_at"]
    fields(found, [*names, "retry_count", "last_error", "headers", "metadata"])
    click.echo()
    for line in lines(found, attempts):
        click.echo(line)
    click.echo()
    show_body(found)


@message.command("list")
@click.option("--channel", metavar="NAME", help="Of this channel or endpoint.")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--before", type=int, metavar="ID", help="Go on below this id.")
@limit_option
@json_option
@on_database
def list_messages(
    db: Database, channel: str | None, status: str | None, before: int | None, limit: int, as_json: bool
) -> None:
    """List messages, newest first, waiting and ended ones."""
    found = db.run(looking_messages.messages(limit=limit + 1, channel=channel, status=status, before=before))
    if channel is not None and not found:
        with knowing_names(db, channel):
            db.run(looking_messages.demand_channel(channel))
    end = found[limit - 1]["id"] if len(found) > limit else None
    if end is None and status != "processing" and (channel is not None or status is not None):
        # The page is short: because there is no more, or because it was looked for far enough.
        end = db.run(looking_messages.reach(before))
    shown = [row for row in found[:limit] if end is None or row["id"] >= end]
    if as_json:
        document({"messages": shown, "next_before": end})
        return
    if shown:
        columns = ["id", "status", "channel", "priority", "num_attempts", "created_at", "ended_at", "last_error"]
        table(shown, columns)
    elif end is None:
        say("There are no such messages.")
    if end is not None:
        say(f"There may be more: go on with --before {end}")


@message.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=int)
@on_database
@click.pass_context
def cancel(ctx: click.Context, db: Database, ids: tuple[int, ...]) -> None:
    """Cancel messages that wait.

    It is too late for one that is in flight or has ended.
    """
    with db.together():
        late = [message_id for message_id in ids if not db.run(messages.cancel(message_id))]
    for message_id in ids:
        click.echo(f"{message_id} {'too late' if message_id in late else 'cancelled'}")
    if late:
        ctx.exit(SOMETHING_TO_FIX)


@message.command("retry-now")
@click.argument("ids", metavar="ID...", nargs=-1, required=True, type=int)
@on_database
@click.pass_context
def retry_now(ctx: click.Context, db: Database, ids: tuple[int, ...]) -> None:
    """Let messages wait no longer for their time."""
    with db.together():
        late = [message_id for message_id in ids if not db.run(messages.retry_now(message_id))]
    for message_id in ids:
        click.echo(f"{message_id} {'waits for no time' if message_id in late else 'due now'}")
    if late:
        ctx.exit(SOMETHING_TO_FIX)


@message.command()
@click.argument("channel")
@click.option("--limit", type=click.IntRange(1, 10_000), default=10, show_default=True)
@json_option
@on_database
def peek(db: Database, channel: str, limit: int, as_json: bool) -> None:
    """Show what CHANNEL would hand out next, and take nothing."""
    names = ["id", "priority", "ordering_key", "attempt", "created_at", "scheduled_at", "expires_at", "correlation_id"]
    found = [
        {name: _read(one, name) for name in [*names, "headers", "metadata", "payload", "content"]}
        for one in db.run(messages.peek(channel, limit))
    ]
    for one in found:
        one["body"] = one["payload"] if one["content"] is None else one["content"]
    rows = [{name: value for name, value in one.items() if name != "body"} for one in found] if as_json else found
    columns = ["id", "priority", "ordering_key", "attempt", "created_at", "body"]
    listing(rows, columns, as_json=as_json, empty=f"Nothing waits in {channel} right now.")


def _read(one: Message, name: str) -> Any:
    try:
        return getattr(one, name)
    except RecursionError:  # jsonb may be nested deeper than Python can parse
        return "(nested too deeply to be shown here)"
