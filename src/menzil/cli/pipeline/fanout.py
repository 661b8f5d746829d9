"""`menzil pipeline fanout`: a table of events goes to their subscribers."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli.pipeline import bulk
from menzil.cli.pipeline.options import column_options, pipeline_options, workshop
from menzil.cli.pipeline.source import demand, kind_of, open_source
from menzil.cli.pipeline.watch import watching
from menzil.cli.plan import yes_option
from menzil.cli.show import count


@click.command()
@click.argument("source")
@click.option("--event-type", metavar="NAME", help="What all rows are.  [default: the column event_type]")
@click.option("--send-id", required=True, metavar="ID", help="The same id again sends nothing again.")
@column_options
@yes_option
@pipeline_options
def fanout(
    dsn: str | None,
    master: str | None,
    source: str,
    event_type: str | None,
    send_id: str,
    kind: str | None,
    schema: str | None,
    payload: str | None,
    columns: dict[str, str],
    rejects: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Send the rows of SOURCE, each an event, to all who have subscribed, exactly once.

    What `menzil publish` does for one event: filters, schemas, one copy per endpoint. SOURCE and its columns are
    those of `menzil pipeline send`.
    """
    kind = kind_of(source, kind)
    demand(source, kind)
    with workshop(dsn, master) as shop, watching(shop, as_json=as_json):
        spark = shop.spark
        from menzil.spark.jobs import fanout as job  # only now: importing Spark takes a while

        frame = open_source(spark, source, kind, schema)
        said: dict[str, Any] = {"send_id": send_id, "event_type": event_type, "payload": payload, "columns": columns}
        plan = job.plan_fanout(spark, frame, shop.dsn, **said)
        asked = count(plan.subscriptions, "subscription")
        opening = [
            f"Sends {count(plan.messages, 'message')} for {count(plan.events, 'event')}, by {asked}.",
            *([f"{count(plan.unwanted, 'event')} fit no subscription."] if plan.unwanted else []),
        ]
        bulk.conclude(
            shop,
            "fanout",
            opening,
            plan,
            lambda: job.fanout(spark, frame, shop.dsn, **said, rejects=rejects, plan=plan),
            rejects=rejects,
            yes=yes,
            as_json=as_json,
        )
