"""`menzil lake register`: the pointers of a lake, for a database that has none or older ones."""

from __future__ import annotations

import click

from menzil.cli.database import connect, demand, located
from menzil.cli.dsn import dsn_option
from menzil.cli.show import say


@click.command()
@dsn_option
@click.argument("lake")
@click.option("--catalog", metavar="NAME", help="Catalog of .pyiceberg.yaml.  [default: the queue's database]")
@click.option("--metadata", metavar="URI", help="The metadata file of one table, where the hint is not enough.")
@click.option("--replace", is_flag=True, help="Also point tables that the catalog has to this lake.")
@click.option("--beside", is_flag=True, help="Keep the lake that the catalog has, and register this one as a second.")
def register(
    dsn: str | None, lake: str, catalog: str | None, metadata: str | None, replace: bool, beside: bool
) -> None:
    """Make the lake at LAKE (a path, or s3://…) known to this database.

    For a database that was made anew, or restored from a backup that is older than the lake. No file is changed.
    """
    from menzil.spark.lake import register as registering
    from menzil.spark.lake.catalog import open_catalog
    from menzil.spark.lake.errors import in_words

    if replace and beside:
        raise click.UsageError("--replace and --beside exclude each other.")
    with located(dsn, migrated=True) as found, connect(found) as conn, in_words():
        demand(conn, found)
        opened = open_catalog(found, catalog)
        if replace:
            tables = registering.replace(opened, conn, lake, metadata)
        else:
            tables = registering.register(opened, lake, metadata, beside=beside)
        namespace = registering.namespace_of(opened, lake)
    for table, pointer in tables.items():
        say(f"{namespace}.{table} is at {pointer}")
