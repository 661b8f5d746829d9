"""`menzil dlq`: messages that were given up."""

from __future__ import annotations

import click

from menzil.cli.body import show_body
from menzil.cli.database import Database, on_database
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.names import knowing_names, limit_option, page
from menzil.cli.plan import carry_out, yes_option
from menzil.cli.progress import Progress
from menzil.cli.redrive import redrive
from menzil.cli.several import on_databases
from menzil.cli.show import cell, count, document, fields, json_option, listing, say
from menzil.cli.timeline import attempt_lines
from menzil.model.errors import UnknownNameError
from menzil.ops import history, looking_dlq, looking_messages, sweeping
from menzil.ops.looking import CAP

#: Dead letters of one cleanup statement.
CHUNK = 10_000


@click.group()
def dlq() -> None:
    """Look at dead letters, send them once more, clean up."""


dlq.add_command(redrive)


@dlq.command()
@json_option
@on_databases
def summary(db: Database, as_json: bool) -> None:
    """Count dead letters by endpoint."""
    columns = ["endpoint_name", "failed_count", "redriven_count", "oldest_failed_at", "newest_failed_at"]
    found = db.run(history.dlq_summary())
    listing(found, columns, as_json=as_json, empty="There are no dead letters.")


@dlq.command()
@click.option("--endpoint", metavar="NAME", help="Of this endpoint or channel.")
@limit_option
@json_option
@on_databases
def causes(db: Database, endpoint: str | None, limit: int, as_json: bool) -> None:
    """Group failed dead letters by what went wrong."""
    found = db.run(history.dlq_causes(endpoint, limit))
    columns = ["failed_count", "endpoint_name", "error_class", "cause", "oldest_failed_at", "newest_failed_at"]
    listing(found, [*columns, "sample_dlq_id"], as_json=as_json, empty="There are no failed dead letters.")


@dlq.command("list")
@click.option("--endpoint", metavar="NAME", help="Of this endpoint or channel.")
@click.option("--status", type=click.Choice(["failed", "redriven"]))
@click.option("--before", type=int, default=2**63 - 1, metavar="ID", help="Go on below this id.", show_default=False)
@limit_option
@json_option
@on_databases
def list_dead_letters(
    db: Database, endpoint: str | None, status: str | None, before: int, limit: int, as_json: bool
) -> None:
    """List dead letters, newest first. ID is that of the dead letter, not that of the message."""
    if endpoint is not None:
        with knowing_names(db, endpoint):
            db.run(looking_messages.demand_channel(endpoint))
    found = db.run(looking_dlq.dead_letters(limit=limit + 1, endpoint=endpoint, status=status, before=before))
    columns = ["id", "original_message_id", "endpoint_name", "status", "num_attempts", "failed_at", "last_error"]
    page(found, columns, limit, as_json=as_json, empty="There are no such dead letters.", go_on="--before", key="id")


@dlq.command()
@click.argument("dlq_id", metavar="ID", type=int)
@json_option
@on_database
def show(db: Database, dlq_id: int, as_json: bool) -> None:
    """Show a dead letter with its body and every attempt."""
    found = db.run(looking_dlq.dead_letter(dlq_id))
    if found is None:
        hint = "`menzil dlq list` shows their ids; a dead letter has another id than its message"
        raise UnknownNameError(f"There is no dead letter {dlq_id}.", hint=hint)
    attempts = db.run(looking_messages.attempts(found["original_message_id"]))
    if as_json:
        document({**found, "attempts": attempts})
        return
    fields({name: value for name, value in found.items() if name not in ("payload", "content")})
    click.echo()
    for attempt in attempts:
        click.echo("\n".join(attempt_lines(attempt)))
    click.echo()
    show_body(found)


@dlq.command("take-back")
@click.argument("dlq_id", metavar="ID", type=int)
@on_database
@click.pass_context
def take_back(ctx: click.Context, db: Database, dlq_id: int) -> None:
    """Cancel the message that a redrive made; its dead letter is failed again."""
    if db.run(history.redrive_take_back(dlq_id)):
        say(f"Dead letter {dlq_id} is failed again.")
        return
    say(f"It is too late: the message of dead letter {dlq_id} is in flight or has ended.")
    ctx.exit(SOMETHING_TO_FIX)


@dlq.command()
@yes_option
@json_option
@on_database
def cleanup(db: Database, yes: bool, as_json: bool) -> None:
    """Delete old dead letters, failed and redriven ones.

    Old is what the setting dlq_retention_days says.
    """
    old = db.run(looking_dlq.old_dead_letters())
    sentence = f"Deletes {count(old['messages'], 'dead letter')}{' or more' if old['messages'] >= CAP else ''}"
    if old["messages"]:
        sentence += f", {old['failed']:,} of them never redriven, from {cell(old['oldest'])} to {cell(old['newest'])}"

    def act() -> dict[str, int]:
        with Progress("deleted", old["messages"]) as progress:
            while gone := db.run(sweeping.dead_letters(CHUNK)):
                progress.add(gone)
        return {"messages": progress.done}

    carry_out([f"{sentence}."], old, act, yes=yes, as_json=as_json)
