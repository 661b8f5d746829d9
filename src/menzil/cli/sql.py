"""`menzil sql`: print the SQL that `menzil migrate` would run, for those who run SQL themselves. Never connects."""

from __future__ import annotations

import click

from menzil.install import script


@click.group()
def sql() -> None:
    """Print the SQL that migrate would run, without connecting.

    Each script is one transaction of plain SQL, for psql or any other client.
    """


@sql.command()
def install() -> None:
    """Print the script for a database without menzil."""
    click.echo(script("install"), nl=False)


@sql.command()
@click.option("--from", "start", type=int, metavar="VERSION", help="Leave out what this schema version already has.")
def upgrade(start: int | None) -> None:
    """Print the script for a database with an older menzil.

    It skips what the database already has, so it may be run again.
    """
    click.echo(script("upgrade", start=start), nl=False)


@sql.command()
def uninstall() -> None:
    """Print the script that removes menzil and all messages."""
    click.echo(script("uninstall"), nl=False)
