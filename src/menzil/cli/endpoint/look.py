"""Endpoints as they are configured, and as they fare."""

from __future__ import annotations

import click

from menzil.cli.database import Database, on_database
from menzil.cli.names import page, page_options
from menzil.cli.several import on_databases
from menzil.cli.show import document, fields, json_option, listing, pretty
from menzil.ops import endpoints, looking
from menzil.watch.destination import destination
from menzil.watch.endpoints import described


@click.command("list")
@page_options
@json_option
@on_databases
def list_endpoints(db: Database, limit: int, after: str, as_json: bool) -> None:
    """List endpoints by name."""
    found = db.run(looking.endpoints(limit + 1, after))
    rows = found if as_json else [{**one, "url": destination(one["protocol"], one["config"])} for one in found]
    empty = "There are no endpoints. Make one with `menzil endpoint create NAME --url URL`."
    page(rows, ["name", "protocol", "enabled", "paused", "circuit_state", "url"], limit, as_json=as_json, empty=empty)


@click.command()
@click.argument("name")
@json_option
@on_database
def show(db: Database, name: str, as_json: bool) -> None:
    """Show the config of an endpoint, without its secrets."""
    found = described(db.run, name)
    if as_json:
        document(found)
        return
    fields({key: value for key, value in found.items() if key not in ("config", "limits", "updated_at")})
    fields({key: value for key, value in found["limits"].items() if value not in (None, 0)})
    click.echo(pretty(found["config"]))


@click.command()
@click.argument("name", required=False)
@json_option
@on_databases
def health(db: Database, name: str | None, as_json: bool) -> None:
    """Show how endpoints fare.

    Circuit, last success and failure, and what waits.
    """
    found = db.run(endpoints.get_endpoint_health(name))
    columns = ["endpoint_name", "enabled", "paused", "circuit_state", "circuit_failure_count", "pending_messages"]
    columns += ["in_flight", "oldest_pending_message", "last_success_at", "last_failure_at"]
    listing(found, columns, as_json=as_json, empty="There are no endpoints.")
