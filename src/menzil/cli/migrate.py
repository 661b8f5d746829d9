"""`menzil migrate`: install menzil into a database, or bring it up to date."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from menzil import install
from menzil.cli.database import located
from menzil.cli.dsn import dsn_option
from menzil.cli.finite import Finite


@click.command()
@dsn_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of sentences.")
@click.option("--target", type=click.IntRange(min=1), help="Stop after this migration and leave the code alone.")
@click.option("--reapply", is_flag=True, help="Apply functions, views and roles even if they are current.")
@click.option("--wait", type=Finite(min=0), default=60.0, show_default=True, help="Seconds to wait for locks.")
def migrate(dsn: str | None, as_json: bool, target: int | None, reapply: bool, wait: float) -> None:
    """Install menzil into a database, or bring it up to date.

    Safe while workers run, and when several run it at once. A second run changes nothing.
    """
    pace = install.Pace(patience=wait)
    with located(dsn, migrated=False) as database:
        # Sentences are for people: with --json they go where they do not mix with the answer.
        report = install.migrate(
            database, target=target, reapply=reapply, pace=pace, progress=lambda line: click.echo(line, err=as_json)
        )
    if as_json:
        click.echo(json.dumps({**asdict(report), "changed": report.changed}))
    elif not report.changed:
        click.echo(f"Nothing to do: schema {report.to_version} is up to date.")
    else:
        click.echo(f"Schema {report.from_version} is now {report.to_version}, in {report.seconds:.1f} s.")
