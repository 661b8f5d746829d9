"""Plans as people see them: how far, how long still, what became of the messages, and whom they reach."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from menzil.model.errors import PermissionDeniedError, UnknownNameError
from menzil.model.redact import Redactor
from menzil.ops import looking, looking_dlq, plans, watch
from menzil.watch.finding import Run
from menzil.watch.redaction import redacted

#: What a plan of each kind does to a message.
VERBS = {"redrive": "redrives", "replay": "replays", "cancel": "cancels"}

#: Options of `menzil plan create`, and the keys of a filter that they are.
OPTIONS = {
    "--channel": "channel",
    "--cause": "cause_hash",
    "--all": "all",
    "--id": "ids",
    "--status": "status",
    "--since": "since",
    "--until": "until",
}

#: Seconds ahead from which on a step by hand schedules nothing more: an hour, less what a step may take.
FAR_AHEAD = 3590.0
#: Seconds between two steps that found nothing.
PAUSE = 0.02


def listing(run: Run, *, limit: int = 100, before: int | None = None, status: str | None = None) -> dict[str, Any]:
    """Return {"plans", "next_before", "as_of"}, newest first; each plan as told() tells it."""
    now = run(looking.now())
    found = run(plans.plans(limit=limit + 1, before=2**63 - 1 if before is None else before, status=status))
    shown = [told(row, now) for row in found[:limit]]
    return {"plans": shown, "next_before": shown[-1]["id"] if len(found) > limit else None, "as_of": now}


def unattended(run: Run) -> str | None:
    """A sentence where no worker is alive: then no session steps a plan that runs. A role may not see workers: None."""
    try:
        workers = run(watch.get_worker_status())
    except PermissionDeniedError:
        return None
    if any(worker.status == "alive" for worker in workers):
        return None
    return "No worker is alive, and workers step plans: start one with `menzil worker`."


def one(run: Run, plan_id: int) -> dict[str, Any]:
    """Return a plan as told() tells it, with {"outcome", "targets", "commands", "unattended", "as_of"}.

    `unattended` is a sentence while the plan runs and no worker is alive.
    """
    now = run(looking.now())
    row = known(run, plan_id)
    return {
        **told(row, now),
        "outcome": run(plans.plan_outcome(plan_id)),
        "targets": run(plans.plan_targets(plan_id)),
        "commands": commands(row),
        "unattended": unattended(run) if row["status"] == "running" else None,
        "as_of": now,
    }


def with_cause(run: Run, plan: dict[str, Any], redactor: Redactor | None = None) -> dict[str, Any]:
    """A plan of one() and {"cause"}: the text of the cause that it is about, as one of its letters tells it.

    It is None where no letter tells it, and for a role that watches: that may not read dead letters.
    """
    try:
        return {**plan, "cause": _cause(run, plan, redactor)}
    except PermissionDeniedError:
        return {**plan, "cause": None}


def _cause(run: Run, plan: dict[str, Any], redactor: Redactor | None) -> str | None:
    digits = plan["filter"].get("cause_hash")
    letters = [number for target in plan["targets"] for number in target["first_ids"] or []]
    if digits is None or not letters:
        return None
    found = run(looking_dlq.cause_of_letter(letters[0], digits))
    return None if found is None else str(redacted({"cause": found}, redactor)["cause"])


def known(run: Run, plan_id: int) -> dict[str, Any]:
    """Return the columns of the view, or refuse an id that is not there."""
    row = run(plans.plan(plan_id))
    if row is None:
        hint = "`menzil plan list` shows them; drafts that were not run are deleted after a day"
        raise UnknownNameError(f"There is no plan {plan_id}.", hint=hint)
    return row


def waiting(run: Run) -> list[dict[str, Any]]:
    """Plans that run and wait for something, for a page of what needs an operator."""
    now = run(looking.now())
    return [told(row, now) for row in run(plans.plans_that_wait())]


def told(row: dict[str, Any], now: datetime) -> dict[str, Any]:
    """The columns of the view and {"remaining", "percent", "seconds_left", "sentence"}.

    A number that was estimated is too low or too high: then remaining is at least 0, and percent is at most 99 until
    the plan is done.
    """
    left = remaining(row)
    return {
        **row,
        "remaining": left,
        "percent": _percent(row),
        "seconds_left": _seconds_left(row, left, now),
        "sentence": sentence(row),
    }


def remaining(row: dict[str, Any]) -> int:
    """How many messages a plan has still to handle; 0 when it has ended."""
    handled = row["done"] + row["skipped"]
    return max(row["counted"] - handled, 0) if row["status"] in ("draft", "running", "paused") else 0


def _percent(row: dict[str, Any]) -> int:
    if row["status"] == "done":
        return 100
    handled = row["done"] + row["skipped"]
    return int(min(99, 100 * handled // max(row["counted"], handled, 1)))


def _seconds_left(row: dict[str, Any], left: int, now: datetime) -> float | None:
    """Of a plan with a rate: until its last message is due. None where nothing holds the pace."""
    if row["rate"] is None or row["status"] not in ("draft", "running", "paused"):
        return None
    ahead = 0.0 if row["last_due_at"] is None else max(0.0, (row["last_due_at"] - now).total_seconds())
    return ahead + float(left / row["rate"])


def sentence(row: dict[str, Any]) -> str:
    """What the plan is about: `Redrives 1,200 dead letters of billing at 50 per second.`"""
    number = ("" if row["counted_exactly"] else "about ") + f"{row['counted']:,}"
    thing = {"redrive": "dead letter", "replay": "ended message", "cancel": "waiting message"}[row["kind"]]
    where = row["filter"]
    words = [VERBS[row["kind"]].capitalize(), number, thing if row["counted"] == 1 else thing + "s"]
    if "channel" in where:
        words.append(f"of {where['channel']}")
    if "all" in where:
        words.append("of all channels")
    if "cause_hash" in where:
        words.append(f"of cause {where['cause_hash']}")
    if "status" in where:
        words.append(f"that ended as {where['status']}")
    words += [f"{word} {where[word]}" for word in ("since", "until") if word in where]
    if row["rate"] is not None:
        words.append(f"at {row['rate']:g} per second")
    return " ".join(words) + "."


def commands(row: dict[str, Any]) -> dict[str, dict[str, str]]:
    """What may be done with the plan now, each as {"sql", "cli"}."""
    number, status = row["id"], row["status"]
    offered: dict[str, dict[str, str]] = {}
    if status in ("draft", "paused"):
        offered["run"] = _both(f"select menzil.plan_run({number});", f"menzil plan run {number}")
    if status == "running":
        offered["pause"] = _both(f"select menzil.plan_pause({number});", f"menzil plan pause {number}")
    if status in ("draft", "running", "paused"):
        offered["stop"] = _both(f"select menzil.plan_stop({number});", f"menzil plan stop {number}")
    if status != "draft" and row["kind"] != "cancel" and row["done"] > row["taken_back"]:
        offered["take_back"] = _both(
            f"select menzil.plan_stop({number}, true);", f"menzil plan stop {number} --take-back"
        )
    offered["again"] = creation(row["kind"], row["filter"], row["rate"])
    return offered


def creation(kind: str, where: dict[str, Any], rate: float | None) -> dict[str, str]:
    """How the same plan is made, as {"sql", "cli"}."""
    text = json.dumps(where, ensure_ascii=False).replace("'", "''")
    sql = f"select menzil.plan_create('{kind}', '{text}'" + ("" if rate is None else f", {rate:.15g}") + ");"
    words = ["menzil", "plan", "create", kind]
    for option, key in OPTIONS.items():
        for value in where[key] if key == "ids" and key in where else [where[key]] if key in where else []:
            words += [option] if value is True else [option, str(value)]
    return _both(sql, shlex.join(words + ([] if rate is None else ["--rate", f"{rate:.15g}"])))


def step_here(run: Run, plan_id: int, moved: Callable[[int], None]) -> dict[str, Any]:
    """Step a running plan in this session until it ends, waits, or has scheduled an hour; return its columns."""
    while True:
        number = run(plans.plan_step(plan_id))
        moved(number)
        row = known(run, plan_id)
        if row["status"] != "running" or row["last_error"] is not None:
            return row
        if number == 0:
            if _is_far_ahead(row, run(looking.now())) or all(
                one["finished"] for one in run(plans.plan_targets(plan_id))
            ):
                return row
            time.sleep(PAUSE)  # a step found nothing among many messages, or another session is at the plan


def _is_far_ahead(row: dict[str, Any], now: datetime) -> bool:
    """Whether the next message of a plan would be due in more than an hour, so that no step makes it now."""
    if row["rate"] is None or row["last_due_at"] is None:
        return False
    return bool((row["last_due_at"] - now).total_seconds() + 1 / row["rate"] > FAR_AHEAD)


def _both(sql: str, cli: str) -> dict[str, str]:
    return {"sql": sql, "cli": cli}
