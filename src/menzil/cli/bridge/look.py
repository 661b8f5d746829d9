"""Bridges as they are configured, where they stand, and what they would take."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from menzil.bridge.looking import coming
from menzil.bridge.looking import lag as lag_of
from menzil.bridge.source import SourceError
from menzil.cli.bridge.config import described
from menzil.cli.database import Database, connect, demand, located, on_database
from menzil.cli.dsn import dsn_option
from menzil.cli.names import page, page_options
from menzil.cli.several import on_databases
from menzil.cli.show import document, fields, json_option, listing, pretty, say
from menzil.model.errors import MenzilError
from menzil.ops import bridges

_EMPTY = (
    "There are no bridges. Make one with `menzil bridge create NAME --protocol redis --config JSON --channel NAME`."
)


@click.command("list")
@page_options
@json_option
@on_databases
def list_bridges(db: Database, limit: int, after: str, as_json: bool) -> None:
    """List bridges by name, and what they took."""
    found = db.run(bridges.bridges(limit + 1, after))
    rows = found if as_json else [{**one, "goal": one["channel"] or one["event_type"]} for one in found]
    columns = ["name", "protocol", "goal", "paused", "processes", "taken", "refused", "lost", "lag", "last_error"]
    page(rows, columns, limit, as_json=as_json, empty=_EMPTY)


@click.command()
@click.argument("name")
@json_option
@on_database
def show(db: Database, name: str, as_json: bool) -> None:
    """Show a bridge, without its secrets, and where it stands."""
    found = described(db, name)
    positions = db.run(bridges.bridge_positions(name))
    if as_json:
        document({**found, "positions": positions})
        return
    fields({key: value for key, value in found.items() if key not in ("config", "updated_at")})
    click.echo(pretty(found["config"]))
    if positions:
        listing(positions, ["partition", "position", "taken", "refused", "lost", "lag"], as_json=False, empty="")


@click.command()
@click.argument("name")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Most records.")
@json_option
@dsn_option
def plan(dsn: str | None, name: str, limit: int, as_json: bool) -> None:
    """Show what the bridge would take next, without taking it."""
    with located(dsn, migrated=True) as found:
        with connect(found) as conn:
            demand(conn, found)
            described(Database(conn), name)
        rows = _asked(coming(found, name, limit))
    columns = ["partition", "position", "ordering_key", "bytes", "body", "fault"]
    listing(rows, columns, as_json=as_json, empty="The source has no records that the bridge has not taken.")


@click.command()
@click.argument("name", required=False)
@json_option
@dsn_option
def lag(dsn: str | None, name: str | None, as_json: bool) -> None:
    """Show how many records wait in the source, per partition.

    A process that runs the bridge says it with its heartbeats; where there is none, the source is asked.
    """
    with located(dsn, migrated=True) as found:
        with connect(found) as conn:
            demand(conn, found)
            db = Database(conn)
            named = [described(db, name)] if name else db.run(bridges.bridges(1000))
            rows = db.run(bridges.bridge_positions(name))
        failures: dict[str, str] = {}
        for one in [one for one in named if not one["processes"]]:
            try:
                waits = _asked(lag_of(found, one["name"]))
            except MenzilError as error:
                if name:
                    raise
                failures[one["name"]] = error.message  # the others are shown
                continue
            ours = {row["partition"]: row for row in rows if row["name"] == one["name"]}
            for partition, count in waits.items():
                if partition in ours:
                    ours[partition]["lag"] = count
                else:
                    rows.append({"name": one["name"], "partition": partition, "position": None, "lag": count})
    shown = [{key: row.get(key) for key in ("name", "partition", "position", "lag", "moved_at")} for row in rows]
    if shown or not failures:
        listing(shown, ["name", "partition", "position", "lag", "moved_at"], as_json=as_json, empty=_EMPTY)
    elif as_json:
        document([])
    for bridge, why in failures.items():
        click.echo(f"Bridge {bridge}: {why}", err=True)
    if failures:
        raise click.exceptions.Exit(1)


def _asked(question: Any) -> Any:
    try:
        return asyncio.run(question)
    except SourceError as error:
        said = str(error).rstrip(".")
        raise MenzilError(f"{said}.", hint="is the source reachable from here, and is the config right?") from None


__all__ = ["lag", "list_bridges", "plan", "say", "show"]
