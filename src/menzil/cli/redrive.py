"""`menzil dlq redrive`: dead letters go back into the queue."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli.database import Database, on_database
from menzil.cli.finite import RATE
from menzil.cli.paced import carry_out_paced, of_cause
from menzil.cli.plan import carry_out, yes_option
from menzil.cli.progress import Progress
from menzil.cli.show import cell, count, document, duration, json_option, say
from menzil.model.errors import DisabledError, UsageError
from menzil.ops import history
from menzil.watch import redriving


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, type=int)
@click.option("--endpoint", metavar="NAME", help="All failed ones of this endpoint or channel.")
@click.option("--all", "everything", is_flag=True, help="All failed ones.")
@click.option("--cause", metavar="TEXT", help="With --endpoint or --all: only of this cause, as `dlq causes` words it.")
@click.option("--rate", type=RATE, metavar="N", help="So many per second, as a plan.")
@yes_option
@json_option
@on_database
def redrive(
    db: Database,
    ids: tuple[int, ...],
    endpoint: str | None,
    everything: bool,
    cause: str | None,
    rate: float | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Send dead letters once more.

    Those with these IDs at once, all or none; or, with --yes, all of an endpoint or of a cause, oldest first. With
    --rate a plan does it, which can be paused, stopped and taken back: `menzil plan`.
    """
    if [bool(ids), endpoint is not None, everything].count(True) != 1:
        raise UsageError("Which dead letters?", hint="give their ids, or --endpoint NAME, or --all")
    if ids and (cause is not None or rate is not None):
        word = "--cause" if cause is not None else "--rate"
        raise UsageError(f"{word} goes with --endpoint or --all.", hint="leave it out: the ids say which ones, at once")
    if ids:
        _redrive_some(db, ids, as_json=as_json)
        return
    groups = redriving.groups(db.run, endpoint, cause)
    total = sum(group["messages"] for group in groups)
    plan = {"messages": total, "cause": cause, "endpoints": groups}
    sentences = [
        f"{group['messages']:,} of {group['endpoint']}, failed {cell(group['oldest'])} to {cell(group['newest'])}"
        for group in groups
    ]
    head = f"Redrives {count(total, 'dead letter')}"
    if rate is not None:
        head += f" over {duration(total / rate)} at {rate:g} per second"
        plan |= {"rate": rate, "seconds": total / rate}

    def act() -> dict[str, int]:
        if rate is None:
            return _redrive_groups(db, groups, cause, total, lenient=everything)
        where: dict[str, Any] = {"all": True} if everything else {"channel": endpoint}
        where |= of_cause(db, endpoint, cause) if cause is not None else {}
        return carry_out_paced(db, "redrive", where, rate, as_json=as_json)

    carry_out([f"{head}.", *sentences], plan, act, yes=yes, as_json=as_json)


def _redrive_some(db: Database, ids: tuple[int, ...], *, as_json: bool) -> None:
    with db.together():
        made = {dlq_id: db.run(history.redrive_message(dlq_id)) for dlq_id in ids}
    if as_json:
        document([{"dlq_id": dlq_id, "message_id": message_id} for dlq_id, message_id in made.items()])
    else:
        for message_id in made.values():
            click.echo(message_id)


def _redrive_groups(
    db: Database, groups: list[dict[str, Any]], cause: str | None, total: int, *, lenient: bool
) -> dict[str, int]:
    with Progress("redriven", total) as progress:
        for group in groups:
            redriving.redrive(db.run, group, cause, progress.add, _left_alone if lenient else None)
    return {"messages": progress.done}


def _left_alone(closed: DisabledError) -> None:
    say(f"Left alone: {closed.message}")
