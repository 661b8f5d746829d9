"""How the plan of a bulk job is told to a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from menzil.cli.pipeline.options import Workshop
from menzil.cli.pipeline.record import recorded
from menzil.cli.plan import carry_out
from menzil.cli.show import cell, count, document, say

#: Lines of a list.
MOST = 20


def shares(endpoints: Mapping[str, int]) -> list[str]:
    """Who gets how many, the largest first."""
    lines = [f"  {number:,} to {name}" for name, number in list(endpoints.items())[:MOST]]
    left = len(endpoints) - MOST
    return [*lines, f"  and to {count(left, 'more endpoint')}"] if left > 0 else lines


def sample(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A few of them, as they would be sent."""
    return ["For instance:", *[f"  {_line(row)}" for row in rows]] if rows else []


def refused(reasons: Mapping[str, int], rows: Sequence[Mapping[str, Any]], rejects: str | None) -> list[str]:
    """What is wrong, and with which rows."""
    if not reasons:
        return []
    total = sum(reasons.values())
    fate = f"they go to {rejects}" if rejects else "nothing is sent while there are any"
    lines = [f"{count(total, 'row')} would be refused; {fate}:"]
    lines += [f"  {number:,} × {reason}" for reason, number in list(reasons.items())[:MOST]]
    return [
        *lines,
        f"The first {len(rows)}:" if total > len(rows) else "Those are:",
        *[f"  {_line(row)}" for row in rows],
    ]


def _line(row: Mapping[str, Any]) -> str:
    return cell(json.dumps(row, ensure_ascii=False, default=cell))


def said_before(number: int | None, what: str) -> list[str]:
    """What an id has done already."""
    if number is None:
        return []
    return [f"This {what} has sent {count(number, 'message')} already; doing it again sends nothing."]


def conclude(
    sentences: list[str],
    plan: Mapping[str, Any],
    act: Callable[[], Mapping[str, Any]],
    *,
    yes: bool,
    stopped: bool,
    as_json: bool,
) -> None:
    """Show the plan; do it with --yes, unless something in the plan forbids it."""
    if not stopped:
        carry_out(sentences, plan, act, yes=yes, as_json=as_json)
        return
    for sentence in [*sentences, "Nothing was sent."]:
        say(sentence)
    if as_json:
        document({"plan": plan, "done": None})


def finished(shop: Workshop, kind: str, lake: str | None, job: Callable[[], Any], as_json: bool) -> dict[str, Any]:
    """Do the job; its report as the `done` of a document, with a sentence for people who read along."""
    with recorded(shop, kind, lake) as run:
        report = job()
        run.rows, run.verdict = report.messages, "repeated" if report.repeated else "ok"
    if not as_json:
        words = "were sent before; nothing was sent now" if report.repeated else f"sent in {report.seconds:.1f} s"
        say(f"{count(report.messages, 'message')} {words}.")
    return asdict(report) if as_json else {"messages": report.messages}
