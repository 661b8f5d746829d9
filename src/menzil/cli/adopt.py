"""`menzil adopt`: a copy of a database is made live, or a database is made to stand still like a copy."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli.database import Database, on_database
from menzil.cli.plan import carry_out, yes_option
from menzil.cli.show import count, json_option
from menzil.ops import bridges, looking, upkeep, watch

#: Endpoints and schedules that a plan counts at most.
MOST = 10_000


@click.command()
@click.option("--undo", is_flag=True, help="Let this database stand still like a copy, until it is adopted.")
@yes_option
@json_option
@on_database
def adopt(db: Database, undo: bool, yes: bool, as_json: bool) -> None:
    """Make a copy of a database live: workers deliver what waits in it, and its schedules fire.

    A database that was restored from a dump or cloned from a template is a copy and stands still. A copy of the whole
    server (a base backup, a snapshot of its disk) looks like the original: let it stand still with --undo before the
    first worker starts.
    """
    notice = db.run(upkeep.copy_notice())
    found = _found(db)
    if undo:
        first = f"Database {db.conn.info.dbname} is live." if notice is None else notice
        then = f"It stands still from now on, with {_told(found)}."
    else:
        first = notice or f"Database {db.conn.info.dbname} is live already: it is no copy."
        then = f"It goes live, with {_told(found)}."
    due = (notice is None) == undo
    carry_out(
        [first, then] if due else [first],
        {"copy": notice is not None, **found},
        lambda: _act(db, undo=undo),
        yes=yes or not due,
        as_json=as_json,
    )


def _found(db: Database) -> dict[str, int]:
    """What a worker would find there."""
    depth = sum(int(metric.value) for metric in db.run(watch.metrics()) if metric.name == "queue_depth")
    endpoints = [one for one in db.run(looking.endpoints(MOST)) if one["enabled"] and not one["paused"]]
    schedules = [one for one in db.run(looking.schedules(MOST, bodies=False)) if not one["paused"]]
    taking = [one for one in db.run(bridges.bridges(MOST)) if not one["paused"]]
    return {"messages": depth, "endpoints": len(endpoints), "schedules": len(schedules), "bridges": len(taking)}


def _told(found: dict[str, int]) -> str:
    messages, endpoints, schedules = found["messages"], found["endpoints"], found["schedules"]
    told = f"{count(messages, 'message')}, {count(endpoints, 'endpoint')} and {count(schedules, 'schedule')}"
    # Most queues have none. A bridge of a copy takes the records that the original takes too.
    return f"{told}, and {count(found['bridges'], 'bridge')} that take records" if found["bridges"] else told


def _act(db: Database, *, undo: bool) -> dict[str, Any]:
    db.run(upkeep.disown() if undo else upkeep.adopt())
    return {"state": "copy" if undo else "live"}
