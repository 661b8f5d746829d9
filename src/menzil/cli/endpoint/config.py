"""The config of an endpoint: made, and changed key by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from menzil.cli import given
from menzil.cli.database import Database, on_database
from menzil.cli.endpoint.reach import warn_of_closed
from menzil.cli.show import say
from menzil.model.errors import UsageError
from menzil.model.secrets import encrypt_config, secret_keys
from menzil.ops import endpoints
from menzil.watch.endpoints import described

Command = TypeVar("Command", bound=Callable[..., Any])

#: Keys that the channel keeps, so that the config that is read does not show them.
LIMITS = ("rate_limit", "max_concurrency")


def config_options(command: Command) -> Command:
    """Give a click command the ways to say what a config holds."""
    for option in (
        click.option(
            "--retry-policy", type=_policy, metavar="JSON", help="An object, or null for that of the settings."
        ),
        click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Sent with every request."),
        click.option("--config", type=given.json_object("config"), metavar="JSON|@FILE", help="The other keys."),
        click.option("--url", help="Where to deliver."),
    ):
        command = option(command)
    return command


def _policy(text: str) -> dict[str, Any]:
    # An empty policy stands for null: click takes None for an option that was not given.
    return {} if text.strip() == "null" else given.json_object("retry policy")(text)


@click.command()
@click.argument("name")
@click.option("--protocol", default="http", show_default=True)
@config_options
@on_database
def create(db: Database, name: str, protocol: str, retry_policy: dict[str, Any] | None, **said: Any) -> None:
    """Make the endpoint NAME and print its id."""
    config = _said(**said)

    def make() -> int:
        endpoint_id = db.run(endpoints.create_endpoint(name, protocol, encrypt_config(config, name, secret_keys(None))))
        if retry_policy:
            db.run(endpoints.set_retry_policy(name, retry_policy))
        return endpoint_id

    click.echo(db.change(make))
    warn_of_closed(db, protocol, config)


@click.command()
@click.argument("name")
@config_options
@on_database
def alter(db: Database, name: str, retry_policy: dict[str, Any] | None, **said: Any) -> None:
    """Change what is said and keep the rest, secrets included.

    Objects in --config are merged key by key; null takes a key away.
    """
    changes = _said(**said)
    if not changes and retry_policy is None:
        raise UsageError("There is nothing to change.", hint="give --url, --header, --config or --retry-policy")

    def change() -> None:
        if changes:
            config = merged(described(db.run, name)["config"], changes)
            db.run(endpoints.alter_endpoint(name, encrypt_config(config, name, secret_keys(None))))
        if retry_policy is not None:
            db.run(endpoints.set_retry_policy(name, retry_policy or None))

    db.change(change)
    say(f"Endpoint {name} is changed; tries from now on use the new config.")


def _said(*, url: str | None, config: dict[str, Any] | None, headers: tuple[str, ...]) -> dict[str, Any]:
    chosen = dict(config or {})
    if url is not None:
        chosen["url"] = url
    named = given.headers(headers)
    if named:
        chosen["headers"] = {**(chosen.get("headers") or {}), **named}
    return chosen


def merged(config: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merge changes into a config: objects by key, null takes away, everything else replaces."""
    whole = dict(config)
    for key, value in changes.items():
        old = whole.get(key)
        if value is None and key not in LIMITS:
            whole.pop(key, None)
        elif isinstance(value, dict) and isinstance(old, dict) and not _is_mark(old):
            whole[key] = merged(old, value)
        else:
            whole[key] = value
    return whole


def _is_mark(value: dict[str, Any]) -> bool:
    return value.keys() == {"$secret"}
