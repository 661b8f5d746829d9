"""`menzil sql`: print the SQL that `menzil migrate` would run, for those who run SQL themselves. Never connects."""

from __future__ import annotations

import click

from menzil.install import revision, script


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
@click.option("--alembic", is_flag=True, help="Print a revision file of Alembic that runs the same SQL.")
@click.option("--revises", metavar="ID", help="With --alembic: the revision before it, as `alembic heads` prints it.")
def upgrade(start: int | None, alembic: bool, revises: str | None) -> None:
    """Print the script for a database with an older menzil.

    It skips what the database already has, so it may be run again.
    """
    if revises is not None and not alembic:
        raise click.UsageError("--revises is for a revision of Alembic: give --alembic, too.")
    click.echo(revision(start=start, revises=revises) if alembic else script("upgrade", start=start), nl=False)


@sql.command()
def uninstall() -> None:
    """Print the script that removes menzil and all messages."""
    click.echo(script("uninstall"), nl=False)
