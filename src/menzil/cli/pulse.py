"""`menzil pulse`: how the queue, or one channel, went minute by minute."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from menzil.cli import given
from menzil.cli.database import Database
from menzil.cli.names import knowing_names
from menzil.cli.several import on_databases
from menzil.cli.show import cell, document, json_option, paint, say, table
from menzil.watch.curves import curve

_BARS = " ▁▂▃▄▅▆▇█"


@click.command()
@click.argument("channel", required=False)
@click.option("--since", type=given.when, default="-1h", show_default=True, metavar="TIME", help="From this time …")
@click.option("--until", type=given.when, metavar="TIME", help="… to before this one.  [default: now]")
@click.option("--step", type=given.seconds, metavar="DURATION", help="Of one row.  [default: at most 120 rows]")
@json_option
@on_databases
def pulse(
    db: Database,
    channel: str | None,
    since: datetime | timedelta,
    until: datetime | timedelta | None,
    step: float | None,
    as_json: bool,
) -> None:
    """Show what was sent, ended and failed over time, of CHANNEL or of all together.

    By the minute for two days, by the hour for 90 days. Workers count, so a queue without workers shows what a job
    finds. Rows in which nothing happened are left out; --json has all of them.
    """
    start, end = db.moment(since), db.moment(until)
    assert start is not None
    if channel is None:
        found = curve(db.run, None, since=start, until=end, step=step)
    else:
        with knowing_names(db, channel):
            found = curve(db.run, channel, since=start, until=end, step=step)
    if as_json:
        document(found)
        return
    points = found["points"]
    for name in ("sent", "completed", "failed_tries"):
        numbers = [point[name] or 0 for point in points]
        click.echo(f"{name.replace('_', ' '):13} {bars(numbers[-120:])}  {sum(numbers):,}, most {max(numbers):,}")
    if found["uncounted_since"] is not None:
        stopped = cell(found["uncounted_since"])
        say(f"Not counted since {stopped}: the job pulse, which runs inside workers, does not run.")
    rows = [point for point in points if any(point[name] for name in ("sent", "completed", "failed_tries", "waiting"))]
    if not rows:
        say("Nothing passed in this time. Workers and the job `pulse` write it down: `menzil worker`.")
        return
    click.echo()
    columns = ["at", "sent", "completed", "failed_tries", "dead", "expired", "cancelled", "waiting", "in_flight"]
    measured = ["oldest_s", "p50_ms", "p95_ms"]
    tenths = [
        {**row, **{name: row[name] if row[name] is None else round(row[name], 1) for name in measured}} for row in rows
    ]
    table(tenths, [*columns, *measured])
    for mark in found["marks"]:
        by = f" by {cell(mark['actor'])}" if mark["actor"] else ""
        say(f"{cell(mark['at'])}  {paint(cell(mark['what']))} {cell(mark['entity'])}{by}")


def bars(numbers: list[int]) -> str:
    """One letter for each number, as high as the number is large."""
    most = max(numbers, default=0)
    if most <= 0:
        return _BARS[0] * len(numbers)
    return "".join(_BARS[-(-number * (len(_BARS) - 1) // most)] for number in numbers)
