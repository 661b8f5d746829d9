"""The commands of `menzil pipeline`. Listing them imports no Spark."""

from __future__ import annotations

import click

from menzil.cli.lazy import LazyGroup, Place

PLACES: dict[str, Place] = {
    "audit": Place("menzil.cli.pipeline.audit:audit", "Check on the history that every promise was kept."),
    "export": Place("menzil.cli.pipeline.export:export", "Bring the archive to a lake of Parquet files."),
    "fanout": Place("menzil.cli.pipeline.fanout:fanout", "Send a table of events to their subscribers."),
    "replay": Place("menzil.cli.pipeline.replay:replay", "Send messages of the lake once more."),
    "report": Place("menzil.cli.report:report", "Write a page about deliveries: the same as `menzil report`."),
    "send": Place("menzil.cli.pipeline.send:send", "Send the rows of files or of a table."),
}


@click.group(cls=LazyGroup, places=PLACES)
def pipeline() -> None:
    """Move many messages, and look at their history, with Spark.

    Spark runs inside this command unless --master names a cluster. It is an extra: pip install 'menzil[spark]'.
    """
