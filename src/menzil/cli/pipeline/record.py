"""Runs of the pipeline are written down: menzil.pipeline_runs shows when each began and how it ended.

A run that cannot be written down, because its role may not or the database is away, does its work all the same. A run
that is killed says nothing: it has no end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import click
import psycopg

from menzil.cli.database import Database, connect
from menzil.cli.pipeline.options import Workshop
from menzil.cli.show import say
from menzil.model.errors import MenzilError
from menzil.ops import runs


@dataclass
class Run:
    """What a run says of itself when it is over."""

    rows: int | None = None
    files: int | None = None
    verdict: str = "ok"


@contextmanager
def recorded(shop: Workshop, kind: str, lake: str | None = None) -> Iterator[Run]:
    """Write down that a run begins, and how it ends."""
    run, number = Run(), _begin(shop, kind, lake)
    try:
        yield run
    except (SystemExit, click.exceptions.Exit):  # it did its work and found something
        _end(shop, number, run, None)
        raise
    except BaseException as error:
        run.verdict = "interrupted" if isinstance(error, KeyboardInterrupt) else "failed"
        _end(shop, number, run, str(error).partition("\n")[0] or type(error).__name__)
        raise
    _end(shop, number, run, None)


def _begin(shop: Workshop, kind: str, lake: str | None) -> int | None:
    if not shop.dsn:  # a lake alone
        return None
    try:
        return shop.db.run(runs.begin(kind, lake))
    except (MenzilError, psycopg.Error) as error:
        _shrug(error)
        return None


def _end(shop: Workshop, number: int | None, run: Run, error: str | None) -> None:
    if number is None:
        return
    op = runs.end(number, rows=run.rows, files=run.files, verdict=run.verdict, error=error)
    try:
        shop.db.run(op)
    except (MenzilError, psycopg.Error):
        try:  # the run took long, and the connection rested meanwhile
            with connect(shop.dsn) as conn:
                Database(conn).run(op)
        except (MenzilError, psycopg.Error) as again:
            _shrug(again)


def _shrug(error: MenzilError | psycopg.Error) -> None:
    sentence = error.message if isinstance(error, MenzilError) else str(error).strip().partition("\n")[0]
    say(f"menzil.pipeline_runs does not show this run: {sentence.rstrip('.')}.")
