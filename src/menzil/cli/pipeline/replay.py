"""`menzil pipeline replay`: messages of the lake are sent once more."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

import click

from menzil.cli import given
from menzil.cli.finite import RATE
from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.pipeline import tell
from menzil.cli.pipeline.history import must_be_lake
from menzil.cli.pipeline.options import pipeline_options, workshop
from menzil.cli.pipeline.watch import watching
from menzil.cli.plan import yes_option
from menzil.cli.show import cell, count, duration
from menzil.model.errors import UsageError
from menzil.ops.looking_messages import ENDED


@click.command()
@click.option("--lake", required=True, metavar="DIR", help="Where `menzil pipeline export` put the history.")
@click.option("--endpoint", "endpoints", multiple=True, metavar="NAME", help="Messages of this one; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Messages of all endpoints.")
@click.option("--from", "start", type=given.when, metavar="TIME", help="Created at this time or later …")
@click.option("--to", "end", type=given.when, metavar="TIME", help="… and before this one.")
@click.option("--status", type=click.Choice(ENDED), help="Only those that ended so.")
@click.option("--where", metavar="SQL", help="Only those for which this is true.")
@click.option("--rate", type=RATE, metavar="N", help="So many per second.")
@click.option("--run-id", required=True, metavar="ID", help="The same id again sends nothing again.")
@yes_option
@pipeline_options
def replay(
    dsn: str | None,
    master: str | None,
    lake: str,
    endpoints: tuple[str, ...],
    everything: bool,
    start: datetime | timedelta | None,
    end: datetime | timedelta | None,
    status: str | None,
    where: str | None,
    rate: float | None,
    run_id: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Send messages of the lake once more, in the order they were created in, exactly once.

    SQL is a condition over the columns of the lake, in the words of Spark; the payload is a text of JSON:
    --where "get_json_object(payload, '$.country') = 'TR' and num_attempts > 3"

    TIME is ISO 8601, in UTC unless it says otherwise, or a distance from now: -1d, "2h ago", now.
    """
    if bool(endpoints) == everything:
        raise UsageError("Messages of which endpoint?", hint="give --endpoint NAME, or --all")
    must_be_lake(lake)
    with workshop(dsn, master) as shop, watching(shop, as_json=as_json):
        # Fixed now: the plan and the run speak of the same range.
        since, until = shop.db.moment(start), shop.db.moment(end)

        spark = shop.spark
        from menzil.spark.jobs import replay as job  # only now: importing Spark takes a while

        said: dict[str, Any] = {
            "run_id": run_id, "endpoint": endpoints or None, "start": since, "end": until, "status": status,
            "where": where, "rate": rate,
        }  # fmt: skip
        plan = job.plan_replay(spark, shop.dsn, lake, **said)
        pace = "" if plan.seconds is None else f", over {duration(plan.seconds)} at {rate:g} per second"
        kind = f"{status or 'ended'} message"
        sentences = [
            f"Sends {count(plan.messages, kind)} once more{pace}.",
            *[
                f"  {share.messages:,} to {share.endpoint}, created {cell(share.oldest)} to {cell(share.newest)}"
                for share in plan.endpoints[: tell.MOST]
            ],
            *(
                [f"  and to {count(len(plan.endpoints) - tell.MOST, 'more endpoint')}"]
                if len(plan.endpoints) > tell.MOST
                else []
            ),
            *([f"{count(plan.erased, 'erased message')} left out."] if plan.erased else []),
            *tell.said_before(plan.already_sent, "run id"),
            *[f"Nothing is sent: {sentence}" for sentence in plan.closed],
        ]
        stopped = bool(plan.closed) and plan.already_sent is None
        tell.conclude(
            sentences,
            asdict(plan),
            lambda: tell.finished(
                shop, "replay", lake, lambda: job.replay(spark, shop.dsn, lake, **said, plan=plan), as_json
            ),
            yes=yes,
            stopped=stopped,
            as_json=as_json,
        )
    if stopped:
        raise SystemExit(SOMETHING_TO_FIX)
