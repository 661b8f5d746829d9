"""`menzil settings`: what belongs to the whole queue."""

from __future__ import annotations

import click

from menzil.cli.database import Database, on_database
from menzil.cli.show import document, json_option, say, table
from menzil.model.redact import Redactor
from menzil.ops import looking, upkeep


@click.group()
def settings() -> None:
    """Look at and change the settings of the whole queue."""


@settings.command("list")
@json_option
@on_database
def list_settings(db: Database, as_json: bool) -> None:
    """List all settings, with their defaults."""
    found = db.run(looking.settings())
    if as_json:
        document(found)
    else:
        table(found, ["name", "value", "default_value", "unit", "description"], longest=None)


@settings.command()
@click.argument("name")
@json_option
@on_database
def get(db: Database, name: str, as_json: bool) -> None:
    """Print the value of one setting."""
    value = db.run(upkeep.setting(name))
    if as_json:
        document({"name": name, "value": value})
    else:
        click.echo(value)


@settings.command("set")
@click.argument("name")
@click.argument("value")
@on_database
def set_setting(db: Database, name: str, value: str) -> None:
    """Change a setting for all sessions.

    It counts from the next transaction on; the value `default` sets it back. Seconds and bytes may carry a unit: 30s,
    "5 min", 64kB.
    """
    if name == "redact" and value != "default" and (faults := Redactor.of_setting(value).faults):
        raise faults[0]
    db.run(upkeep.set_setting(name, value))
    say(f"{name} is {db.run(upkeep.setting(name)) or 'empty'}.")
