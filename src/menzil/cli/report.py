"""`menzil report`, also `menzil pipeline report`: how delivery went, as one page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from menzil.cli import given
from menzil.cli.database import Database, connected
from menzil.cli.files import must_be_writable
from menzil.cli.finite import Finite
from menzil.cli.pipeline.history import lake_option, must_be_lake, reading
from menzil.cli.pipeline.options import pipeline_options
from menzil.cli.report_small import TooLargeError, small_report
from menzil.cli.show import cell, count, document, say
from menzil.model.errors import UsageError
from menzil.report import Figures, Slo, page, troubles


@click.command()
@lake_option
@click.option("--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The page, an HTML file.")
@click.option("--from", "start", type=given.when, metavar="TIME", help="Messages created at this time or later …")
@click.option("--to", "end", type=given.when, metavar="TIME", help="… and before this one.")
@click.option(
    "--goal-seconds",
    type=Finite(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Messages should be delivered within this time …",
)
@click.option("--goal-percent", type=Finite(0, 100), default=99.0, show_default=True, help="… so many of them.")
@pipeline_options
def report(
    dsn: str | None, master: str | None, lake: str | None, out: Path, start: datetime | timedelta | None,
    end: datetime | timedelta | None, goal_seconds: float, goal_percent: float, as_json: bool,
) -> None:  # fmt: skip
    """Write a page about deliveries: what is wrong, volume, latency, retries, dead letters, circuits.

    The file needs nothing else: no network, no scripts. With --from the page also compares with the period before.

    Up to 500,000 messages are counted in this process. More of them, a lake behind a URL, and --master are work for
    Spark, an extra: pip install 'menzil[spark]'.

    TIME is ISO 8601, in UTC unless it says otherwise, or a distance from now: -7d, now.
    """
    must_be_writable(out)
    must_be_lake(lake)
    goal = Slo(goal_seconds, goal_percent / 100)
    made = None
    with suppress(TooLargeError), _database(lake, dsn) as db:
        now = datetime.now(UTC) if db is None else db.now()
        since, until = (now + when if isinstance(when, timedelta) else when for when in (start, end))
        if since is not None and until is not None and since >= until:
            raise UsageError("The range ends before it begins.", hint="give a later --to")
        if master is None and (lake is None or "://" not in lake):
            made = small_report(lake, db, slo=goal, start=since, end=until, now=now)
    if made is None:
        made = _with_spark(lake, dsn, master, goal, since, until, as_json=as_json)
    out.write_text(page(made), encoding="utf-8")
    wrong = [asdict(trouble) for trouble in troubles(made)]
    if as_json:
        document(asdict(made) | {"out": str(out), "wrong": wrong})
        return
    for trouble in wrong:
        say(cell(trouble["sentence"]))
    say(f"{count(made.total['sent'], 'message')} in {out}.")


@contextmanager
def _database(lake: str | None, dsn: str | None) -> Iterator[Database | None]:
    """The database to read; none for a lake alone, which asks no database, not even the embedded one."""
    if lake is not None and dsn is None:
        yield None
        return
    with connected(dsn) as db:
        yield db


def _with_spark(
    lake: str | None, dsn: str | None, master: str | None, goal: Slo, since: datetime | None, until: datetime | None,
    *, as_json: bool,
) -> Figures:  # fmt: skip
    with reading("report", lake, dsn, master, as_json=as_json) as (spark, found, run):
        from menzil.spark.jobs.report import report as job

        made = job(spark, lake, dsn=found, slo=goal, start=since, end=until)
        run.rows = made.total["sent"]
        return made
