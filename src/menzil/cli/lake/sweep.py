"""`menzil lake sweep`: old snapshots, and files that no snapshot names, leave a lake."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

import click

from menzil.cli.database import connect, demand, located
from menzil.cli.dsn import dsn_option
from menzil.cli.finite import Finite
from menzil.cli.show import count, document, json_option, say


@click.command()
@dsn_option
@click.argument("lake")
@click.option("--catalog", metavar="NAME", help="Catalog of .pyiceberg.yaml.  [default: the queue's database]")
@click.option("--keep-days", type=Finite(0, 36_500), default=5.0, show_default=True, help="Of snapshots without tag.")
@json_option
def sweep(dsn: str | None, lake: str, catalog: str | None, keep_days: float, as_json: bool) -> None:
    """Let snapshots of LAKE go that are older than --keep-days and have no tag, and files that no snapshot names.

    A file younger than a day may belong to a run that is at work, and stays; while an export is at work, every file
    stays. What the newest snapshot has, and what was proved before a month was dropped, always stays.
    """
    from menzil.spark.lake.errors import in_words
    from menzil.spark.lake.sweep import sweep as job

    with located(dsn, migrated=True) as found, in_words():
        with connect(found) as conn:
            demand(conn, found)
        done = job(lake, found, keep=timedelta(days=keep_days), catalog=catalog)
    if as_json:
        document(asdict(done))
    else:
        say(
            f"{count(done.snapshots, 'snapshot')} expired, {count(done.removed, 'file')} removed ({done.size:,} bytes)."
        )
        if done.busy:
            say("An export to this lake is at work, so files that nothing names stay. Sweep again when it is done.")
