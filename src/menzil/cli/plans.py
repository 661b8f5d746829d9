"""`menzil plan`: redrives, replays and cancels of many messages that are kept, paced, stopped and taken back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.finite import RATE
from menzil.cli.names import knowing_names, limit_option
from menzil.cli.plan import yes_option
from menzil.cli.progress import Progress
from menzil.cli.show import cell, count, document, duration, fields, json_option, say, table
from menzil.ops import plans
from menzil.ops.looking_messages import ENDED
from menzil.watch import plans as looks

_LISTED = ["id", "kind", "status", "counted", "done", "skipped", "percent", "rate", "actor", "created_at", "last_error"]
_SHOWN = (
    "id", "status", "sentence", "cause", "note", "actor", "via", "counted", "done", "skipped", "taken_back", "percent",
    "created_at", "started_at", "ended_at", "last_due_at", "last_error",
)  # fmt: skip


@click.group()
def plan() -> None:
    """Redrive, replay or cancel many messages: at a pace, with stop and take back."""


@plan.command("list")
@click.option("--status", type=click.Choice(plans.STATUSES), help="Only those.")
@click.option("--before", type=int, metavar="ID", help="Go on below this id.")
@limit_option
@json_option
@on_database
def list_plans(db: Database, status: str | None, before: int | None, limit: int, as_json: bool) -> None:
    """List plans, newest first."""
    found = looks.listing(db.run, limit=limit, before=before, status=status)
    if as_json:
        document({"plans": found["plans"], "next_before": found["next_before"]})
    elif found["plans"]:
        table(found["plans"], _LISTED)
    else:
        say("There are no such plans. Make one with `menzil plan create`.")
    if found["next_before"] is not None:
        say(f"There are more: go on with --before {found['next_before']}")


@plan.command()
@click.argument("plan_id", metavar="ID", type=int)
@json_option
@on_database
def show(db: Database, plan_id: int, as_json: bool) -> None:
    """Show how far a plan is, and what became of its messages."""
    found = looks.with_cause(db.run, looks.one(db.run, plan_id))
    if as_json:
        document(found)
        return
    fields(found, _SHOWN)
    if found["unattended"]:
        say(found["unattended"])
    if found["seconds_left"] is not None:
        click.echo(f"{duration(found['seconds_left'])} left at its rate")
    if found["outcome"]:
        click.echo()
        table(
            [{"status": word, "messages": number} for word, number in found["outcome"].items()], ["status", "messages"]
        )
    if found["targets"]:
        click.echo()
        targets = [
            {**one, "first_ids": ", ".join(map(str, one["first_ids"] or [])) or None} for one in found["targets"]
        ]
        table(targets, ["channel", "counted", "done", "skipped", "waits_for", "room", "first_ids", "last_id"])


@plan.command()
@click.argument("kind", type=click.Choice(["redrive", "replay", "cancel"]))
@click.option("--channel", "--endpoint", "channel", metavar="NAME", help="Of this channel or endpoint.")
@click.option(
    "--cause", "cause_hash", metavar="HASH", help="redrive: of this cause, a hash that `dlq causes --json` lists."
)
@click.option("--all", "everything", is_flag=True, help="redrive, cancel: of all channels.")
@click.option(
    "--id", "ids", type=int, multiple=True, metavar="ID", help="These: of dead letters to redrive, else of messages."
)
@click.option("--status", type=click.Choice(ENDED), help="replay: only those that ended so.")
@click.option("--since", type=given.when, metavar="TIME", help="Died (redrive) or created at this time or later …")
@click.option("--until", type=given.when, metavar="TIME", help="… and before this one.")
@click.option("--rate", type=RATE, metavar="N", help="So many per second.")
@click.option("--note", metavar="TEXT", help="Why, for people.")
@click.option("--key", metavar="TEXT", help="The same command with the same key makes one plan, however often it runs.")
@yes_option
@json_option
@on_database
def create(
    db: Database,
    kind: str,
    since: datetime | timedelta | None,
    until: datetime | timedelta | None,
    everything: bool,
    ids: tuple[int, ...],
    rate: float | None,
    note: str | None,
    key: str | None,
    yes: bool,
    as_json: bool,
    **named: str | None,
) -> None:
    """Make a plan and count what it is about; with --yes let it run.

    Prints the id of the plan. Without --yes it is a draft, good for ten minutes: `menzil plan run ID` lets it run.
    """
    where: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    where |= {"all": True} if everything else {}
    where |= {"ids": list(ids)} if ids else {}
    for word, moment in (("since", db.moment(since)), ("until", db.moment(until))):
        where |= {} if moment is None else {word: moment.isoformat()}
    with knowing_names(db, named["channel"] or ""):
        plan_id = db.run(plans.plan_create(kind, where, rate, note, key))
    if yes:
        db.run(plans.plan_run(plan_id))
    found = looks.with_cause(db.run, looks.one(db.run, plan_id))
    say(found["sentence"])
    if found["seconds_left"] is not None:
        say(f"It takes {duration(found['seconds_left'])} at that rate.")
    for target in found["targets"]:
        if target["waits_for"]:
            say(f"It would wait: {target['waits_for']}")
    if not yes:
        say(f"Nothing was changed. Let it run with `menzil plan run {plan_id}`.")
    elif not _say_unattended(db):
        say("Workers carry it out from now on.")
    if as_json:
        document(found)
    else:
        click.echo(plan_id)


@plan.command("run")
@click.argument("plan_id", metavar="ID", type=int)
@click.option("--here", is_flag=True, help="Do the work in this command; otherwise workers do it.")
@json_option
@on_database
def run_plan(db: Database, plan_id: int, here: bool, as_json: bool) -> None:
    """Let a draft or a paused plan run.

    A draft that is older than ten minutes, or whose count has moved by more than a tenth, is refused: make it again.
    """
    db.run(plans.plan_run(plan_id))
    if here:
        carry_on(db, plan_id)
    _tell(db, plan_id, as_json=as_json)
    if looks.known(db.run, plan_id)["status"] == "running":
        _say_unattended(db)


@plan.command()
@click.argument("plan_id", metavar="ID", type=int)
@json_option
@on_database
def pause(db: Database, plan_id: int, as_json: bool) -> None:
    """Let a plan make nothing more until it runs again."""
    db.run(plans.plan_pause(plan_id))
    _tell(db, plan_id, as_json=as_json)


@plan.command()
@click.argument("plan_id", metavar="ID", type=int)
@click.option("--take-back", is_flag=True, help="Cancel what it made and no worker has leased.")
@json_option
@on_database
def stop(db: Database, plan_id: int, take_back: bool, as_json: bool) -> None:
    """End a plan.

    What it made is still delivered, unless it is taken back: then a redriven dead letter is failed again.
    """
    made = looks.known(db.run, plan_id)["done"]
    with Progress("taken back", made if take_back else None) as progress:
        while taken := db.run(plans.plan_stop(plan_id, take_back)):
            progress.add(taken)
    _tell(db, plan_id, as_json=as_json)


def carry_on(db: Database, plan_id: int) -> dict[str, Any]:
    """Step a running plan here, and say why it is left to workers, if it is; return it as the view has it."""
    row = looks.known(db.run, plan_id)
    with Progress("cancelled" if row["kind"] == "cancel" else "sent", row["counted"]) as progress:
        row = looks.step_here(db.run, plan_id, progress.add)
    if row["last_error"] is not None:
        say(row["last_error"])
    if looks.remaining(row):
        say(f"Workers carry on with it: `menzil plan show {plan_id}` says how far it is.")
    return row


def _say_unattended(db: Database) -> bool:
    """Say that no worker is alive, if none is, and return whether that was said."""
    sentence = looks.unattended(db.run)
    if sentence is not None:
        say(sentence)
    return sentence is not None


def _tell(db: Database, plan_id: int, *, as_json: bool) -> None:
    found = looks.told(looks.known(db.run, plan_id), db.now())
    if as_json:
        document(found)
        return
    words = [f"Plan {plan_id} is {found['status']}", f"{count(found['done'], 'message')} of {found['counted']:,} done"]
    words += [f"{found[word]:,} {word.replace('_', ' ')}" for word in ("skipped", "taken_back") if found[word]]
    click.echo(", ".join(words) + (f": {cell(found['last_error'])}" if found["last_error"] else "."))
