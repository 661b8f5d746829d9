"""`menzil metrics`: the numbers of the queue."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli.database import Database, on_database
from menzil.cli.show import document, json_option, table
from menzil.ops import watch


@click.command()
@json_option
@on_database
def metrics(db: Database, as_json: bool) -> None:
    """Print the numbers of the queue as they stand."""
    found: list[dict[str, Any]] = [
        {"metric_name": one.name, "metric_value": one.value, "labels": one.labels, "metric_type": one.kind}
        for one in db.run(watch.metrics())
    ]
    if as_json:
        document(found)
        return
    rows = [{**one, "labels": " ".join(f"{name}={value}" for name, value in one["labels"].items())} for one in found]
    table(rows, ["metric_name", "labels", "metric_value"])
