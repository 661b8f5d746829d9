"""Redrives and replays at a rate: the command makes a plan, runs it, and schedules its first hour."""

from __future__ import annotations

from typing import Any

from menzil.cli.database import Database
from menzil.cli.plans import carry_on
from menzil.cli.show import say
from menzil.model.errors import UsageError
from menzil.ops import history, plans
from menzil.watch.plans import remaining

#: Causes that are looked through for the one that was named.
MOST_CAUSES = 10_000


def carry_out_paced(db: Database, kind: str, where: dict[str, Any], rate: float, *, as_json: bool) -> dict[str, int]:
    """Make the plan and let it run. What is due within an hour is scheduled here, the rest by workers.

    Returns how many messages it is about, those that workers are left with included.
    """
    plan_id = db.run(plans.plan_create(kind, where, rate))
    db.run(plans.plan_run(plan_id))
    row = carry_on(db, plan_id)
    messages = row["counted"] if row["status"] == "running" and remaining(row) else row["done"]
    say(f"Plan {plan_id}: `menzil plan stop {plan_id} --take-back` takes back what was not delivered.")
    return {"messages": messages, "plan_id": plan_id} if as_json else {"messages": messages}


def of_cause(db: Database, endpoint: str | None, cause: str) -> dict[str, str]:
    """The filter for a cause as `dlq causes` words it, or by its hash."""
    rows = db.run(history.dlq_causes(endpoint, MOST_CAUSES))
    found = sorted({row["cause_hash"] for row in rows if cause in (row["cause"], row["cause_hash"])})
    if len(found) > 1:
        hint = f"make a plan for each: menzil plan create redrive --cause {found[0]}, and so on"
        raise UsageError(f"The cause has {len(found)} classes, and a plan has one: {', '.join(found)}.", hint=hint)
    return {"cause_hash": found[0]} if found else {"cause_hash": "0" * 12}
