"""The config of a bridge: made, and changed key by key."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.endpoint.config import merged
from menzil.cli.show import say
from menzil.model.errors import UnknownNameError, UsageError
from menzil.model.secrets import encrypt_config, secret_keys
from menzil.ops import bridges
from menzil.ops.records import Record

_CONFIG = click.option(
    "--config", type=given.json_object("config"), metavar="JSON|@FILE", help="How to reach and read the source."
)
_CHANNEL = click.option("--channel", metavar="NAME", help="Send the records to this channel or endpoint.")
_EVENT = click.option("--event-type", metavar="NAME", help="Publish the records as events of this type.")
_START = click.option("--start", metavar="WHERE", help="earliest, latest or a position: where a new bridge begins.")


@click.command()
@click.argument("name")
@click.option("--protocol", required=True, help="amqp, kafka, mqtt, nats or redis.")
@_CONFIG
@_START
@_CHANNEL
@_EVENT
@on_database
def create(db: Database, name: str, protocol: str, channel: str | None, event_type: str | None, **said: Any) -> None:
    """Make the bridge NAME and print its id. Nothing is taken before `menzil bridge run`."""
    click.echo(db.run(bridges.bridge_create(name, protocol, _sealed(name, _said(**said)), channel, event_type)))


@click.command()
@click.argument("name")
@_CONFIG
@_START
@_CHANNEL
@_EVENT
@on_database
def alter(db: Database, name: str, channel: str | None, event_type: str | None, **said: Any) -> None:
    """Change what is said and keep the rest, secrets and positions included.

    Objects in --config are merged key by key; null takes a key away.
    """
    changes = _said(**said)
    if not changes and channel is None and event_type is None:
        raise UsageError("There is nothing to change.", hint="give --config, --start, --channel or --event-type")

    def change() -> None:
        config = merged(described(db, name)["config"], changes) if changes else None
        sealed = None if config is None else _sealed(name, config)
        db.run(bridges.bridge_alter(name, sealed, channel, event_type))

    db.change(change)
    say(f"Bridge {name} is changed; a process that runs it begins anew within seconds.")


def described(db: Database, name: str) -> Record:
    """Return a bridge, or refuse a name that no bridge has."""
    found = db.run(bridges.bridge(name))
    if found is None:
        raise UnknownNameError(f"There is no bridge named {name!r}.", hint="`menzil bridge list` shows them")
    return found


def _said(*, config: dict[str, Any] | None, start: str | None) -> dict[str, Any]:
    return {**(config or {}), **({"start": start} if start is not None else {})}


def _sealed(name: str, config: dict[str, Any]) -> Any:
    return encrypt_config(config, f"bridge {name}", secret_keys(None))
