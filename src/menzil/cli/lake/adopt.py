"""`menzil lake adopt`: a lake of menzil 0.1 becomes Iceberg tables."""

from __future__ import annotations

from dataclasses import asdict

import click

from menzil.cli.pipeline.options import pipeline_options, workshop
from menzil.cli.pipeline.watch import watching
from menzil.cli.show import count, document, say


@click.command()
@click.argument("lake")
@click.option("--catalog", metavar="NAME", help="Catalog of .pyiceberg.yaml.  [default: the queue's database]")
@pipeline_options
def adopt(dsn: str | None, master: str | None, lake: str, catalog: str | None, as_json: bool) -> None:
    """Take over the lake of menzil 0.1 at LAKE: prove every file of it, then name exactly those in Iceberg tables.

    No file of data is written again. Its old manifests stay, in a directory renamed to _manifest.adopted. Interrupted
    anywhere, it may be repeated.
    """
    with workshop(dsn, master) as shop, watching(shop, as_json=as_json):
        spark = shop.spark  # before anything of menzil.spark.jobs is imported
        from menzil.spark.jobs.plainly import of_lake
        from menzil.spark.lake.adopt import adopt as job

        done = of_lake(job)(spark, lake, shop.dsn, catalog=catalog)
    if as_json:
        document(asdict(done))
    elif done.repeated:
        say("This lake was adopted before.")
    else:
        proved = f"{count(done.rows, 'message')} of {count(done.months, 'month')}"
        say(f"{proved} in {count(done.files, 'file')}, all proved.")
