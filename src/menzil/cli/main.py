"""The `menzil` command: the table of its commands, and nothing they do.

To add one, write a file with a click command beside this one and give it a line in COMMANDS.
"""

from __future__ import annotations

import click

from menzil.cli.lazy import LazyGroup, Place

COMMANDS: dict[str, Place] = {
    "migrate": Place("menzil.cli.migrate:migrate", "Install menzil into a database, or bring it up to date."),
    "pg": Place("menzil.cli.pg:pg", "Start, stop and look at the embedded PostgreSQL."),
    "sql": Place("menzil.cli.sql:sql", "Print the SQL that migrate would run, without connecting."),
}


@click.group(
    cls=LazyGroup,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 fine, 1 something to fix, 2 could not.",
)
@click.version_option(package_name="menzil", prog_name="menzil", message="%(prog)s %(version)s")
def main() -> None:
    """A message queue and transactional outbox inside PostgreSQL.

    Commands that need a database take --dsn, else MENZIL_DSN, else dsn in menzil.toml, else the PG* variables of
    libpq, else the embedded PostgreSQL.
    """
