"""`menzil channel state` and `turns`: how channels stand, and whose turn is next."""

from __future__ import annotations

import click

from menzil.cli.database import Database
from menzil.cli.names import knowing_names, page_options
from menzil.cli.several import on_databases
from menzil.cli.show import cell, document, json_option, say, table
from menzil.watch import channels
from menzil.watch.channels import SORTS
from menzil.watch.states import number


@click.command()
@click.argument("name", required=False)
@click.option("--sort", type=click.Choice(list(SORTS)), default="name", show_default=True, help="The worst first.")
@click.option("--contains", default="", metavar="TEXT", help="Only channels with this text in their names.")
@click.option("--held", is_flag=True, help="Only channels that something holds.")
@page_options
@json_option
@on_databases
def state(
    db: Database, name: str | None, sort: str, contains: str, held: bool, limit: int, after: str, as_json: bool
) -> None:
    """Show how channels stand: what holds them and until when, what waits, how much of their limits is used.

    With NAME: that channel alone, with the messages it hands out next, blocked ordering keys and who serves it. Counts
    stop at 10,000.
    """
    if name is not None:
        with knowing_names(db, name):
            one = channels.channel(db.run, name)
        if as_json:
            document(one)
        else:
            show_channel(one)
        return
    found = channels.channels(db.run, after=after, limit=limit, contains=contains, sort=sort, held=held)
    if as_json:
        document(found)
        return
    if not found["channels"]:
        say("There are no such channels.")
    else:
        rows = [
            row | {"waiting": number(row["waiting"], row["at_least"]), "dead": number(row["dead"])}
            for row in found["channels"]
        ]
        columns = ["channel", "state", "waiting", "scheduled", "oldest_s", "in_flight", "max_concurrency"]
        table(rows, [*columns, "in_per_minute", "out_per_minute", "blocked_keys", "dead", "workers"])
    if found["next_after"] is not None:
        say(f"There are more: go on with --after {cell(found['next_after'])}")


def show_channel(one: dict[str, object]) -> None:
    """Print a channel as channels.channel() tells of it."""
    from menzil.cli.show import fields

    hidden = ("next", "blocked", "served_by", "acts", "spark", "id", "name", "as_of")
    fields({key: value for key, value in one.items() if key not in hidden})
    parts = {
        "next": ["id", "priority", "ordering_key", "attempt", "created_at"],
        "blocked": ["id", "ordering_key", "original_message_id", "failed_at", "last_error"],
        "served_by": ["worker", "status", "host", "pid", "version", "in_flight"],
        "acts": ["at", "what", "actor", "via"],
    }
    titles = {"next": "next", "blocked": "blocked keys", "served_by": "served by", "acts": "last acts"}
    for part, columns in parts.items():
        rows = one[part]
        if isinstance(rows, list) and rows:
            click.echo(f"\n{titles[part]}")
            table(rows, columns)


@click.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Most turns to show.")
@json_option
@on_databases
def turns(db: Database, limit: int, as_json: bool) -> None:
    """Show the next leases over all channels as workers would take them, and who is passed over. Takes nothing."""
    found = channels.turns(db.run, limit)
    if as_json:
        document(found)
        return
    if found["turns"]:
        table(found["turns"], ["turn", "channel", "priority", "message_id", "ordering_key", "due_at"])
    else:
        say("No message is due.")
    for one in found["skipped"]:
        waiting = f"{number(one['waiting'], one['at_least'])} {'message' if one['waiting'] == 1 else 'messages'}"
        say(f"Passed over: {cell(one['channel'])}, {cell(one['state'])}, {waiting}")
