"""`menzil message`: one message by its id, and lists of them."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from menzil.cli import show as showing
from menzil.cli.body import show_body
from menzil.cli.database import Database, on_database
from menzil.cli.files import must_be_writable
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.message_look import compare, hiding, life, redact_option, why
from menzil.cli.names import limit_option
from menzil.cli.show import cell, document, fields, json_option, paint, say, table
from menzil.cli.timeline import lines
from menzil.model.errors import PermissionDeniedError, UsageError
from menzil.model.message import Message
from menzil.ops import messages
from menzil.ops.looking import SCAN
from menzil.ops.looking_messages import STATUSES
from menzil.report.incident import incident
from menzil.watch import listing
from menzil.watch import messages as messages_watched
from menzil.watch.search import as_typed, parse


@click.group()
def message() -> None:
    """Look at messages, cancel them, hurry them."""


message.add_command(why)
message.add_command(life)
message.add_command(compare)


@message.command()
@click.argument("message_id", metavar="ID", type=int)
@click.option("--html", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write it as a page.")
@redact_option
@json_option
@on_database
def show(db: Database, message_id: int, html: Path | None, redact: bool, as_json: bool) -> None:
    """Show a message and everything that happened to it, or its status where the role may not read messages.

    With --html: one file that needs nothing else and runs nothing, to attach to a ticket. What the setting redact names
    is hidden in it, always.
    """
    if html is not None:
        must_be_writable(html, "--html")
    hide = hiding(db, redact or html is not None)
    try:
        found = messages_watched.one(db.run, message_id, redactor=hide)
    except PermissionDeniedError:  # menzil_application and menzil_worker may ask for the status alone
        if html is not None:
            raise
        status = asdict(db.run(messages.status(message_id)))
        document(status) if as_json else fields(status)
        return
    if html is not None:
        html.write_text(incident(found, made_at=db.now(), source=db.conn.info.dbname), encoding="utf-8")
        say(f"Message {message_id} is in {html}.")
    if as_json:
        document(found)
    elif html is None:
        _show(found)


def _show(found: dict[str, Any]) -> None:
    names = ["id", "status", "channel", "priority", "ordering_key", "idempotency_key", "correlation_id", "expires_at"]
    fields(found, [*names, "retry_count", "last_error", "headers", "metadata"])
    if found["ended_at"] is None:
        for reason in found["why"][:1]:
            click.echo(f"{paint('why', bold=True)}  {cell(reason['sentence'])}")
    click.echo()
    for line in lines(found, found["attempts"]):
        click.echo(line)
    click.echo()
    show_body(found)


@message.command("list")
@click.argument("search", nargs=-1, metavar="[QUALIFIER:VALUE]...")
@click.option("--channel", metavar="NAME", help="Of this channel or endpoint.")
@click.option("--status", type=click.Choice(STATUSES))
@click.option("--before", type=int, metavar="ID", help="Go on below this id.")
@limit_option
@redact_option
@json_option
@on_database
def list_messages(
    db: Database,
    search: tuple[str, ...],
    channel: str | None,
    status: str | None,
    before: int | None,
    limit: int,
    redact: bool,
    as_json: bool,
) -> None:
    """List messages, newest first, waiting and ended ones.

    Qualifiers narrow the list: channel: status: key: idem: corr: id: before: since: until: error:, as in
    `menzil message list status:failed since:2h error:"timed out"`.
    """
    asked = parse(" ".join(map(as_typed, search)))
    for name, value in (("channel", channel), ("status", None if status is None else (status,)), ("before", before)):
        if value is not None and getattr(asked, name) is not None:
            raise UsageError(f"--{name} and {name}: say the same thing.", hint="give one of them")
        if value is not None:
            asked = replace(asked, **{name: value})  # type: ignore[arg-type]
    found = listing.search(db.run, asked, limit=limit, window=SCAN, redactor=hiding(db, redact))
    if as_json:
        document(found)
        return
    if found["messages"]:
        columns = ["id", "status", "channel", "priority", "num_attempts", "created_at", "ended_at", "last_error"]
        table(found["messages"], columns)
    elif found["next_before"] is None:
        say("There are no such messages.")
    if found["next_before"] is not None:
        say(f"There may be more: go on with --before {found['next_before']}")


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
    showing.listing(rows, columns, as_json=as_json, empty=f"Nothing waits in {channel} right now.")


def _read(one: Message, name: str) -> Any:
    try:
        return getattr(one, name)
    except RecursionError:  # jsonb may be nested deeper than Python can parse
        return "(nested too deeply to be shown here)"
