"""The commands of `menzil bridge`, and those that only call one function each."""

from __future__ import annotations

import click

from menzil.cli.bridge.config import alter, create
from menzil.cli.bridge.look import lag, list_bridges, plan, show
from menzil.cli.bridge.run import run
from menzil.cli.database import Database, on_database
from menzil.cli.show import say
from menzil.ops import bridges


@click.group()
def bridge() -> None:
    """Take records of Kafka, NATS, Redis, RabbitMQ and MQTT into channels.

    A record becomes one message: the position in the source moves in the transaction of the messages. RabbitMQ and
    MQTT have no positions; there the id of a message keeps its repeat away.
    """


for command in (list_bridges, show, create, alter, plan, lag, run):
    bridge.add_command(command)


@bridge.command()
@click.argument("name")
@on_database
def pause(db: Database, name: str) -> None:
    """Take nothing until the bridge is resumed."""
    db.run(bridges.bridge_pause(name))
    say(f"Bridge {name} is paused.")


@bridge.command()
@click.argument("name")
@on_database
def resume(db: Database, name: str) -> None:
    """Let a paused bridge take records again."""
    db.run(bridges.bridge_resume(name))
    say(f"Bridge {name} takes records where a process runs it.")


@bridge.command()
@click.argument("name")
@click.argument("partition")
@click.argument("position", required=False)
@click.option("--forget", is_flag=True, help="Begin this partition as the config says.")
@on_database
def seek(db: Database, name: str, partition: str, position: str | None, forget: bool) -> None:
    """Read a partition on from POSITION: back to take records once more, forward to pass them over."""
    if (position is None) != forget:
        raise click.UsageError("Give a POSITION, or --forget.")
    db.run(bridges.bridge_seek(name, partition, position))
    say(f"Bridge {name} reads {partition} from {position or 'its start'} on.")


@bridge.command()
@click.argument("name")
@on_database
def drop(db: Database, name: str) -> None:
    """Remove a bridge, its secrets and its positions.

    The messages that it made stay. A new bridge of that name begins as its config says.
    """
    db.run(bridges.bridge_drop(name))
    say(f"Bridge {name} is gone.")
