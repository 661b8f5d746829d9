"""`menzil pipeline send`: the rows of files or of a table become messages."""

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
@click.option("--endpoint", metavar="NAME", help="Where all rows go.  [default: the column endpoint]")
@click.option("--send-id", required=True, metavar="ID", help="The same id again sends nothing again.")
@column_options
@yes_option
@pipeline_options
def send(
    dsn: str | None,
    master: str | None,
    source: str,
    endpoint: str | None,
    send_id: str,
    kind: str | None,
    schema: str | None,
    payload: str | None,
    columns: dict[str, str],
    rejects: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Send the rows of SOURCE, each as a message, exactly once.

    SOURCE is a file or a directory of files, or with --format table a table of Spark's catalog. Columns called
    endpoint, priority, ordering_key, idempotency_key, correlation_id, scheduled_at, expires_at, headers and metadata
    are options of their messages. The body is the column --payload, else one called payload, else an object of all
    other columns.

    All rows are sent in one transaction, or none. Rows that the engine would refuse are shown before anything is sent.
    """
    kind = kind_of(source, kind)
    demand(source, kind)
    with workshop(dsn, master) as shop, watching(shop, as_json=as_json):
        spark = shop.spark
        from menzil.spark.jobs import send as job  # only now: importing Spark takes a while

        frame = open_source(spark, source, kind, schema)
        said: dict[str, Any] = {"send_id": send_id, "endpoint": endpoint, "payload": payload, "columns": columns}
        plan = job.plan_send(spark, frame, shop.dsn, **said)
        opening = [f"Sends {count(plan.messages, 'message')} of {count(plan.rows, 'row')}."]
        bulk.conclude(
            shop,
            "send",
            opening,
            plan,
            lambda: job.send(spark, frame, shop.dsn, **said, rejects=rejects, plan=plan),
            rejects=rejects,
            yes=yes,
            as_json=as_json,
        )
