"""What all commands of the pipeline share: the database, Spark, and how they are opened."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

from menzil.cli.database import Database, connect, demand, located
from menzil.cli.dsn import dsn_option
from menzil.cli.show import json_option

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = TypeVar("Command", bound=Callable[..., Any])


def master_option(command: Command) -> Command:
    """Give a click command the option --master."""
    return click.option("--master", metavar="URL", help="The Spark cluster.  [default: local[*], in this process]")(
        command
    )


def pipeline_options(command: Command) -> Command:
    """Give a click command --dsn, --master and --json."""
    return dsn_option(master_option(json_option(command)))


def column_options(command: Command) -> Command:
    """Give a click command the options that say what a source is and which of its columns mean what."""
    for option in reversed(_SOURCE):
        command = option(command)
    return command


def pairs(_context: click.Context, _parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Read OPTION=COLUMN pairs."""
    found = {}
    for pair in given:
        word, equals, column = pair.partition("=")
        if not equals or not word or not column:
            raise click.BadParameter(f"{pair!r} is not OPTION=COLUMN, such as ordering_key=customer_id")
        found[word] = column
    return found


_SOURCE = (
    click.option("--format", "kind", type=click.Choice(["parquet", "csv", "json", "table"]), help="What SOURCE is."),
    click.option("--schema", metavar="DDL", help="The columns of a CSV or JSON source: 'id bigint, name string'."),
    click.option("--payload", metavar="COLUMN", help="The body.  [default: payload, else an object of what is left]"),
    click.option("--column", "columns", multiple=True, callback=pairs, metavar="OPTION=COLUMN",
                 help="Take an option of the messages from this column. May be given several times."),
    click.option("--rejects", metavar="DIR", help="Write refused rows there and send the others."),
)  # fmt: skip


@dataclass
class Workshop:
    """A database that fits, and Spark when it is first asked for."""

    dsn: str
    db: Database
    master: str | None
    borrowed: bool  # this process has a Spark session already, which is not ours to stop

    @cached_property
    def spark(self) -> SparkSession:
        """The session; starting it takes seconds, so refusals that need no session come before.

        Ask for it before anything of menzil.spark.jobs is imported: it is here that a missing extra has a sentence.
        """
        from menzil.spark.session import get_session

        return get_session("menzil pipeline", self.master)

    def close(self) -> None:
        """Stop Spark, if it was started here."""
        if "spark" in self.__dict__ and not self.borrowed:
            self.spark.stop()


@contextmanager
def workshop(dsn: str | None, master: str | None) -> Iterator[Workshop]:
    """Open the database, and close Spark at the end if it was started."""
    with located(dsn, migrated=True) as found, connect(found) as conn:
        demand(conn, found)
        shop = Workshop(found, Database(conn), master, is_running())
        try:
            yield shop
        finally:
            shop.close()


def is_running() -> bool:
    module = sys.modules.get("pyspark.sql")
    return module is not None and module.SparkSession.getActiveSession() is not None
