"""`menzil pipeline report`: how delivery went, as one page."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path

import click

from menzil.cli import given
from menzil.cli.pipeline.history import lake_option, must_be_writable, reading
from menzil.cli.pipeline.options import pipeline_options
from menzil.cli.show import count, document, say


@click.command()
@lake_option
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The page, an HTML file.")
@click.option("--from", "start", type=given.when, metavar="TIME", help="Messages created at this time or later …")
@click.option("--to", "end", type=given.when, metavar="TIME", help="… and before this one.")
@click.option(
    "--goal-seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Messages should be delivered within this time …",
)
@click.option(
    "--goal-percent", type=click.FloatRange(0, 100), default=99.0, show_default=True, help="… so many of them."
)
@pipeline_options
def report(
    dsn: str | None, master: str | None, lake: str | None, out: Path, start: datetime | timedelta | None,
    end: datetime | timedelta | None, goal_seconds: float, goal_percent: float, as_json: bool,
) -> None:  # fmt: skip
    """Write a page with the figures of delivery: volume, latency, retries, dead letters, circuits.

    The file needs nothing else: no network, no scripts.
    """
    must_be_writable(out)
    now = datetime.now().astimezone()
    since, until = (now + when if isinstance(when, timedelta) else when for when in (start, end))
    with reading(lake, dsn, master, as_json=as_json) as (spark, found):
        from menzil.spark.jobs.report import Slo
        from menzil.spark.jobs.report import report as job

        goal = Slo(goal_seconds, goal_percent / 100)
        made = job(spark, lake, out, dsn=found, slo=goal, start=since, end=until)
    if as_json:
        document(asdict(made) | {"out": str(out)})
    else:
        say(f"{count(made.total['sent'], 'message')} in {out}.")
