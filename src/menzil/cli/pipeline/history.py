"""What `report` and `audit` read: a lake, a database, or a lake and what its database has beyond it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from menzil.cli.pipeline.options import Workshop, workshop
from menzil.cli.pipeline.options import is_running as is_running
from menzil.cli.pipeline.record import Run, recorded
from menzil.cli.pipeline.watch import watching
from menzil.model.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from menzil.cli.database import Database

Command = TypeVar("Command", bound=Callable[..., Any])


def lake_option(command: Command) -> Command:
    """Give a click command the option --lake."""
    words = "Read this lake; with --dsn also what the database has beyond it.  [default: the database alone]"
    return click.option("--lake", metavar="DIR", help=words)(command)


def must_be_lake(lake: str | None) -> None:
    """Refuse a directory without a lake before anything is started; what a URL names, Spark finds out."""
    if (
        lake is not None
        and "://" not in lake
        and not any((Path(lake).expanduser() / each).is_dir() for each in ("messages/metadata", "_manifest"))
    ):
        raise UsageError(f"There is no lake in {lake}.", hint=f"`menzil pipeline export --lake {lake}` makes one")


@contextmanager
def reading(
    kind: str, lake: str | None, dsn: str | None, master: str | None, *, as_json: bool
) -> Iterator[tuple[SparkSession, str | None, Run]]:
    """Spark, the dsn to read from, and the run: a lake alone asks no database, not even the embedded one."""
    must_be_lake(lake)
    if lake is None or dsn is not None:
        with (
            workshop(dsn, master) as shop,
            recorded(shop, kind, lake) as run,
            _plainly(),
            watching(shop, as_json=as_json),
        ):
            yield shop.spark, shop.dsn, run
        return
    alone = Workshop("", cast("Database", None), master, is_running())
    try:
        with _plainly(), watching(alone, as_json=as_json):
            yield alone.spark, None, Run()
    finally:
        alone.close()


@contextmanager
def _plainly() -> Iterator[None]:
    """What Spark says in two pages of Java, in a sentence."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, KeyboardInterrupt):
        raise
    except Exception as error:
        from menzil.spark.session import explain

        raise explain(error) from error
