"""`menzil dlq redrive`: dead letters go back into the queue."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli.database import Database, on_database
from menzil.cli.plan import carry_out, yes_option
from menzil.cli.progress import Progress
from menzil.cli.show import cell, count, document, json_option, say
from menzil.model.errors import DisabledError, UsageError
from menzil.ops import history

#: Dead letters of one statement, which is also one transaction.
CHUNK = 1_000

#: Causes that a plan distinguishes.
MOST_CAUSES = 10_000


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, type=int)
@click.option("--endpoint", metavar="NAME", help="All failed ones of this endpoint or channel.")
@click.option("--all", "everything", is_flag=True, help="All failed ones.")
@click.option("--cause", metavar="TEXT", help="With --endpoint or --all: only of this cause, as `dlq causes` words it.")
@yes_option
@json_option
@on_database
def redrive(
    db: Database,
    ids: tuple[int, ...],
    endpoint: str | None,
    everything: bool,
    cause: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Send dead letters once more.

    Those with these IDs at once, all or none; or, with --yes, all of an endpoint or of a cause, oldest first.
    """
    if [bool(ids), endpoint is not None, everything].count(True) != 1:
        raise UsageError("Which dead letters?", hint="give their ids, or --endpoint NAME, or --all")
    if ids and cause is not None:
        raise UsageError("--cause goes with --endpoint or --all.", hint="leave it out: the ids say which ones")
    if ids:
        _redrive_some(db, ids, as_json=as_json)
        return
    groups = _groups(db, endpoint, cause)
    total = sum(group["messages"] for group in groups)
    plan = {"messages": total, "cause": cause, "endpoints": groups}
    sentences = [
        f"{group['messages']:,} of {group['endpoint']}, failed {cell(group['oldest'])} to {cell(group['newest'])}"
        for group in groups
    ]
    carry_out(
        [f"Redrives {count(total, 'dead letter')}.", *sentences],
        plan,
        lambda: _redrive_groups(db, groups, cause, total, lenient=everything),
        yes=yes,
        as_json=as_json,
    )


def _redrive_some(db: Database, ids: tuple[int, ...], *, as_json: bool) -> None:
    with db.together():
        made = {dlq_id: db.run(history.redrive_message(dlq_id)) for dlq_id in ids}
    if as_json:
        document([{"dlq_id": dlq_id, "message_id": message_id} for dlq_id, message_id in made.items()])
    else:
        for message_id in made.values():
            click.echo(message_id)


def _groups(db: Database, endpoint: str | None, cause: str | None) -> list[dict[str, Any]]:
    """What would be redriven, by endpoint."""
    groups: dict[str, dict[str, Any]] = {}
    for row in db.run(history.dlq_causes(endpoint, MOST_CAUSES)):
        if cause is not None and row["cause"] != cause:
            continue
        group = groups.setdefault(row["endpoint_name"], {"endpoint": row["endpoint_name"], "messages": 0})
        group["messages"] += row["failed_count"]
        group["oldest"] = min(group.get("oldest", row["oldest_failed_at"]), row["oldest_failed_at"])
        group["newest"] = max(group.get("newest", row["newest_failed_at"]), row["newest_failed_at"])
    return sorted(groups.values(), key=lambda group: str(group["endpoint"]))


def _redrive_groups(
    db: Database, groups: list[dict[str, Any]], cause: str | None, total: int, *, lenient: bool
) -> dict[str, int]:
    with Progress("redriven", total) as progress:
        for group in groups:
            try:
                # What dies again while this runs is another dead letter: the plan is the most that is moved.
                left = group["messages"]
                while left > 0 and (
                    moved := db.run(history.redrive_endpoint(group["endpoint"], cause, min(left, CHUNK)))
                ):
                    left -= moved
                    progress.add(moved)
            except DisabledError as closed:
                if not lenient:
                    raise
                say(f"Left alone: {closed.message}")
    return {"messages": progress.done}
