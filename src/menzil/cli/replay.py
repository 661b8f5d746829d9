"""`menzil replay`: ended messages are sent once more."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.finite import RATE
from menzil.cli.names import knowing_names
from menzil.cli.paced import carry_out_paced
from menzil.cli.plan import carry_out, yes_option
from menzil.cli.show import cell, count, document, duration, json_option
from menzil.model.errors import UnknownNameError, UsageError
from menzil.ops import history, looking
from menzil.ops.looking_messages import ENDED


@click.command()
@click.argument("ids", metavar="[ID]...", nargs=-1, type=int)
@click.option("--endpoint", metavar="NAME", help="Messages of this endpoint or channel …")
@click.option("--from", "start", type=given.when, metavar="TIME", help="… created at this time or later …")
@click.option("--to", "end", type=given.when, metavar="TIME", help="… and before this one.  [default: now]")
@click.option("--status", type=click.Choice(ENDED), help="Only those that ended so.")
@click.option("--rate", type=RATE, metavar="N", help="So many per second.")
@yes_option
@json_option
@on_database
def replay(
    db: Database,
    ids: tuple[int, ...],
    endpoint: str | None,
    start: datetime | timedelta | None,
    end: datetime | timedelta | None,
    status: str | None,
    rate: float | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Send ended messages once more.

    Those with these IDs at once, all or none; or, with --yes, those of an endpoint and a range of time. With --rate a
    plan does it, which can be paused, stopped and taken back: `menzil plan`.

    TIME is ISO 8601, in UTC unless it says otherwise, or a distance from now: -1d, "2h ago", now.
    """
    if ids:
        if endpoint is not None or start is not None or end is not None or status is not None or rate is not None:
            raise UsageError(
                "Ids and a range say different things.", hint="give ids alone, or --endpoint, --from and --to"
            )
        with db.together():
            made = {message_id: db.run(history.replay_message(message_id)) for message_id in ids}
        if as_json:
            document([{"id": old, "replay_id": new} for old, new in made.items()])
        else:
            for new in made.values():
                click.echo(new)
        return
    if endpoint is None or start is None:
        raise UsageError("Which messages?", hint="give their ids, or --endpoint NAME --from TIME")
    with knowing_names(db, endpoint):
        found = db.run(looking.channel(endpoint))
        if found is None:
            raise UnknownNameError(f"There is no channel or endpoint named {endpoint!r}.")
    # Fixed now: the plan and the run speak of the same range.
    since, until = db.moment(start), db.moment(end if end is not None else timedelta())
    assert since is not None
    assert until is not None
    total = db.run(history.replay_range(found["id"], since, until, status=status, dry_run=True))
    seconds = None if rate is None else total / rate
    what = count(total, f"{status or 'ended'} message")
    sentence = f"Sends {what} of {endpoint} once more, created {cell(since)} to {cell(until)}"
    if seconds is not None:
        sentence += f", over {duration(seconds)} at {rate:g} per second"
    plan = {"endpoint": endpoint, "from": since, "to": until, "status": status, "rate": rate}

    def act() -> dict[str, int]:
        if rate is None:
            return {"messages": db.run(history.replay_range(found["id"], since, until, status=status))}
        where = {"channel": endpoint, "since": since.isoformat(), "until": until.isoformat()}
        where |= {} if status is None else {"status": status}
        return carry_out_paced(db, "replay", where, rate, as_json=as_json)

    carry_out([f"{sentence}."], {**plan, "messages": total, "seconds": seconds}, act, yes=yes, as_json=as_json)
