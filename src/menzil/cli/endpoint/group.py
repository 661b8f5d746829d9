"""The commands of `menzil endpoint`, and those that only call one function each."""

from __future__ import annotations

import click

from menzil.cli.database import Database, on_database
from menzil.cli.endpoint.config import alter, create
from menzil.cli.endpoint.look import health, list_endpoints, show
from menzil.cli.endpoint.rotate import rotate
from menzil.cli.endpoint.test import test
from menzil.cli.show import say
from menzil.ops import channels, endpoints


@click.group()
def endpoint() -> None:
    """Make, change, watch and test endpoints.

    An endpoint is a channel with a destination attached.
    """


for command in (list_endpoints, show, health, create, alter, rotate, test):
    endpoint.add_command(command)


@endpoint.command()
@click.argument("name")
@on_database
def enable(db: Database, name: str) -> None:
    """Let a disabled endpoint take messages again."""
    db.run(endpoints.enable_endpoint(name))
    say(f"Endpoint {name} takes messages.")


@endpoint.command()
@click.argument("name")
@on_database
def disable(db: Database, name: str) -> None:
    """Refuse new messages, and hold what waits until it is enabled again."""
    db.run(endpoints.disable_endpoint(name))
    say(f"Endpoint {name} refuses messages from now on.")


@endpoint.command()
@click.argument("name")
@on_database
def pause(db: Database, name: str) -> None:
    """Accept messages and hold them."""
    db.run(channels.channel_pause(name))
    say(f"Endpoint {name} holds its messages.")


@endpoint.command()
@click.argument("name")
@on_database
def resume(db: Database, name: str) -> None:
    """Deliver what a paused endpoint held."""
    db.run(channels.channel_resume(name))
    say(f"Endpoint {name} delivers its messages.")


@endpoint.command()
@click.argument("name")
@on_database
def reset(db: Database, name: str) -> None:
    """Close its circuit, and end a rest that it asked for."""
    db.run(endpoints.reset_circuit_breaker(name))
    say(f"The circuit of {name} is closed.")


@endpoint.command()
@click.argument("name")
@on_database
def drop(db: Database, name: str) -> None:
    """Remove an endpoint that has no messages left.

    Its secrets go at once, its history stays.
    """
    db.run(endpoints.drop_endpoint(name))
    say(f"Endpoint {name} is gone.")
