"""`menzil workers`: who is at work."""

from __future__ import annotations

from dataclasses import asdict

import click

from menzil.cli.database import Database
from menzil.cli.several import on_databases
from menzil.cli.show import json_option, listing
from menzil.ops import watch
from menzil.watch.workers import takes


@click.command()
@json_option
@on_databases
def workers(db: Database, as_json: bool) -> None:
    """List workers: alive, stopping, stopped, or lost (silent for 30 seconds)."""
    columns = ["worker", "status", "channels", "concurrency", "in_flight", "delivered", "failed", "started_at"]
    columns += ["last_heartbeat_at", "version"]
    found = [asdict(one) for one in db.run(watch.get_worker_status())]
    if not as_json:
        found = [row | {"channels": ", ".join(takes(row["channels"]))} for row in found]
    listing(found, columns, as_json=as_json, empty="No worker is known. Start one with `menzil worker`.")
