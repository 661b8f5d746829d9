"""Commands that look at several databases: a section for each, or one JSON object with a key for each.

A database that cannot be looked at does not keep the others from being shown. Its section holds the sentence and the
hint, and the exit code is 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
import psycopg

from menzil.cli.database import permitted
from menzil.cli.dsn import dsns_options, several_of
from menzil.cli.lazy import COULD_NOT, explained
from menzil.cli.show import collected, document, paint, say
from menzil.model.errors import MenzilError
from menzil.ops.databases import Named

T = TypeVar("T")


def on_databases(command: Callable[..., T]) -> Callable[..., T | None]:
    """As on_database, for a command that only looks: --dsn may be repeated, and --dsn-file names several."""

    @dsns_options
    @wraps(command)
    def connecting(dsns: Sequence[str], dsn_file: Path | None, *args: Any, **kwargs: Any) -> T | None:
        named = several_of(dsns, dsn_file)
        if named is None:
            with permitted(dsns[0] if dsns else None) as db:
                return command(db, *args, **kwargs)

        def look(one: Named) -> None:
            with permitted(one.dsn) as db:
                command(db, *args, **kwargs)

        in_turn(named, look, as_json=bool(kwargs.get("as_json")))
        return None

    return connecting


def in_turn(named: Sequence[Named], look: Callable[[Named], object], *, as_json: bool) -> None:
    """Look at one after the other, and end with the worst exit code."""
    worst, found = 0, dict[str, Any]()
    for place, one in enumerate(named):
        if not as_json:
            click.echo(("\n" if place else "") + paint(one.name, bold=True))
        with collected(as_json) as documents:
            code, trouble = _try(look, one)
        worst = max(worst, code)
        if as_json:
            found[one.name] = trouble or (documents[0] if len(documents) == 1 else documents)
        elif trouble:
            say(f"Error: {trouble['error']}" + (f"\nHint: {trouble['hint']}" if trouble["hint"] else ""))
    if as_json:
        document(found)
    if worst:
        click.get_current_context().exit(worst)


def _try(look: Callable[[Named], object], one: Named) -> tuple[int, dict[str, str | None] | None]:
    try:
        look(one)
    except click.exceptions.Exit as ended:
        return ended.exit_code, None
    except (MenzilError, psycopg.Error) as error:
        told = error if isinstance(error, MenzilError) else explained(error)
        return COULD_NOT, {"error": told.message, "hint": told.hint}
    return 0, None
