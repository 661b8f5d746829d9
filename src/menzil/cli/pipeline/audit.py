"""`menzil pipeline audit`: were the promises kept?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from menzil.cli import timeline
from menzil.cli.finite import Finite
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.pipeline.history import lake_option, reading
from menzil.cli.pipeline.options import pipeline_options
from menzil.cli.show import cell, count, document, paint, say
from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from menzil.spark.jobs.audit import AuditReport, Check, Violation


@click.command()
@lake_option
@click.option(
    "--ledger", metavar="FILE", help="Ids that senders were told are sent: Parquet, JSON lines or CSV, column id."
)
@click.option(
    "--show", type=click.IntRange(0, 1000), default=5, show_default=True, help="Violations of a kind to show."
)
@click.option(
    "--commit-slack",
    type=Finite(0, 31_536_000),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="The longest that a transaction which sends stays open.",
)
@pipeline_options
@click.pass_context
def audit(
    ctx: click.Context, dsn: str | None, master: str | None, lake: str | None, ledger: str | None, show: int,
    commit_slack: float, as_json: bool,
) -> None:  # fmt: skip
    """Check on the history that every promise was kept, and exit with 1 if one was not."""
    if ledger is not None and "://" not in ledger and not Path(ledger).exists():
        raise UsageError(f"There is no file or directory {ledger}.", hint="check --ledger")
    with reading("audit", lake, dsn, master, as_json=as_json) as (spark, found, run):
        from menzil.spark.jobs.audit import audit as job

        made = job(spark, lake, found, ledger=ledger, samples=show, commit_slack=commit_slack)
        run.rows = made.counts["ended"] + made.counts["live"]
        run.verdict = "ok" if made.ok else count(sum(check.violations for check in made.checks), "violation")
    if as_json:
        document(asdict(made) | {"ok": made.ok})
    else:
        _tell(made)
    ctx.exit(0 if made.ok else SOMETHING_TO_FIX)


def _tell(made: AuditReport) -> None:
    counts = made.counts
    click.echo(
        f"{counts['ended']:,} ended ({counts['completed']:,} completed, {counts['failed']:,} failed, "
        f"{counts['expired']:,} expired, {counts['cancelled']:,} cancelled) and {counts['live']:,} live"
        + (f", {counts['acknowledged']:,} acknowledged" if "acknowledged" in counts else "")
        + (f"; {cell(made.first_at)} to {cell(made.last_at)}" if made.first_at else "")
        + "."
    )
    for check in made.checks:
        _tell_check(check, [violation for violation in made.violations if violation.kind == check.kind], made.stories)
    for note in made.notes:
        say(note)
    broken = sum(check.violations for check in made.checks)
    say("Every promise that can be checked was kept." if made.ok else f"{count(broken, 'violation')} found.")


def _tell_check(check: Check, violations: list[Violation], stories: dict[int, dict[str, Any]]) -> None:
    word, colour = ("-", "yellow") if check.skipped else ("ok", "green")
    if check.violations:
        word, colour = f"{check.violations:,}", "red"
    click.echo(f"{paint(word.rjust(9), colour)}  {check.promise}" + (f" ({check.note})" if check.note else ""))
    for violation in violations:
        click.echo(f"{'':11}message {violation.message_id}: {cell(violation.detail)}")
        for number in (violation.message_id, violation.other_id):
            if number in stories:
                click.echo("\n".join(f"{'':13}{line}" for line in _story(number, stories[number])))


def _story(number: int, message: dict[str, Any]) -> list[str]:
    """Its life, a line for each thing that happened; the history of a lake has no live columns."""
    tries = [{"status_code": None, "duration_ms": None, **attempt} for attempt in message.get("attempts") or []]
    if message["status"] == "completed" and not any(attempt["outcome"] == "completed" for attempt in tries):
        tries.append({
            "attempt": message["num_attempts"], "outcome": "completed", "leased_at": message["leased_at"],
            "ended_at": message["ended_at"], "worker": message["worker"], "error": None, "status_code": None,
            "duration_ms": None,
        })  # fmt: skip
    key = f", ordering key {cell(message['ordering_key'])}" if message["ordering_key"] else ""
    return [
        f"message {number} to {cell(message['channel'])}{key}",
        *(f"  {line}" for line in timeline.lines(message, tries)),
    ]
