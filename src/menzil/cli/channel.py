"""`menzil channel`: limits, and holding, releasing and emptying."""

from __future__ import annotations

from typing import Any

import click

from menzil.cli import given
from menzil.cli.channel_look import state, turns
from menzil.cli.database import Database, on_database
from menzil.cli.names import knowing_names, page, page_options
from menzil.cli.plan import carry_out, yes_option
from menzil.cli.several import on_databases
from menzil.cli.show import cell, count, document, fields, json_option, say
from menzil.model.errors import UnknownNameError, UsageError
from menzil.ops import channels, looking
from menzil.ops.looking import CAP


@click.group()
def channel() -> None:
    """Look at channels, set their limits, hold, release and empty them."""


channel.add_command(state)
channel.add_command(turns)


@channel.command("list")
@page_options
@json_option
@on_databases
def list_channels(db: Database, limit: int, after: str, as_json: bool) -> None:
    """List channels by name, endpoints included."""
    found = db.run(looking.channels(limit + 1, after))
    columns = ["name", "is_endpoint", "enabled", "paused", "released", "max_concurrency", "max_size"]
    empty = "There are no channels. Make one with `menzil channel set NAME`."
    page(found, columns, limit, as_json=as_json, empty=empty)


@channel.command()
@click.argument("name")
@json_option
@on_database
def show(db: Database, name: str, as_json: bool) -> None:
    """Show a channel: its limits and what it holds. Counts stop at 100,000."""
    found = _channel(db, name) | db.run(looking.load(name))
    blocked = db.run(looking.blocked_keys(name, 20))
    if as_json:
        document({**found, "blocked_keys": blocked})
        return
    fields(found)
    for key in blocked:
        say(
            f"Ordering key {cell(key['ordering_key'])} is blocked by dead letter {key['id']}: {cell(key['last_error'])}"
        )


def _channel(db: Database, name: str) -> dict[str, Any]:
    with knowing_names(db, name):
        found = db.run(looking.channel(name))
        if found is None:
            raise UnknownNameError(f"There is no channel named {name!r}.")
    return found


def _limit(text: str) -> int:
    """Read a number, or the word none as 0: click takes None for an option that was not given."""
    if text.lower() == "none":
        return 0
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"{text!r} is not a valid limit.", hint="write a number from 1 on, or none")
    return int(text)


@channel.command("set")
@click.argument("name")
@click.option("--max-concurrency", type=_limit, metavar="N|none", help="Most messages in flight at once.")
@click.option("--max-size", type=_limit, metavar="N|none", help="Most messages it holds.")
@click.option("--release-interval", type=given.seconds, metavar="DURATION", help="With --release-count: a rate limit.")
@click.option("--release-count", type=click.IntRange(1), metavar="N", help="Messages per interval.")
@click.option(
    "--on-dead", type=click.Choice(["continue", "block"]), help="What a dead letter does to its ordering key."
)
@on_database
def set_channel(db: Database, name: str, **said: Any) -> None:
    """Make a channel, or change some of its limits."""

    def change() -> bool:
        old = db.run(looking.channel(name))
        limits = {key: old[key] for key in ("max_concurrency", "max_size", "release_count", "on_dead")} if old else {}
        if old:
            limits["release_interval"] = old["release_interval_ms"] / 1000
        limits |= {key: value for key, value in said.items() if value is not None}
        if said["release_count"] and not limits.get("release_interval") and said["release_interval"] is None:
            raise UsageError("--release-count limits nothing without an interval.", hint="add --release-interval 1s")
        for key in ("max_concurrency", "max_size"):
            limits[key] = limits.get(key) or None
        db.run(channels.channel_set(name, **limits))
        return old is None

    made = db.change(change)
    say(f"Channel {name} is made." if made else f"Channel {name} is as you said.")


@channel.command()
@click.argument("name")
@on_database
def pause(db: Database, name: str) -> None:
    """Accept messages and hold them.

    What is in flight may finish.
    """
    db.run(channels.channel_pause(name))
    say(f"Channel {name} holds its messages.")


@channel.command()
@click.argument("name")
@on_database
def resume(db: Database, name: str) -> None:
    """Hand out what a paused channel held."""
    db.run(channels.channel_resume(name))
    say(f"Channel {name} hands out its messages.")


@channel.command()
@click.argument("name")
@on_database
def release(db: Database, name: str) -> None:
    """Take no new messages, drain, then disappear."""
    db.run(channels.channel_release(name))
    say(f"Channel {name} takes no more messages and disappears when it has drained.")


@channel.command()
@click.argument("name")
@yes_option
@json_option
@on_database
def purge(db: Database, name: str, yes: bool, as_json: bool) -> None:
    """Cancel everything that waits.

    What is in flight may finish.
    """
    _channel(db, name)
    load = db.run(looking.load(name))
    waiting, capped = load["pending"], load["pending"] + load["processing"] >= CAP
    sentence = f"Cancels {count(waiting, 'waiting message')}{' or more' if capped else ''} of channel {name}"
    if waiting:
        sentence += f", created {cell(load['oldest'])} to {cell(load['newest'])}"
    plan = {"channel": name, "messages": waiting, "capped": capped, "oldest": load["oldest"], "newest": load["newest"]}
    carry_out(
        [f"{sentence}."], plan, lambda: {"messages": db.run(channels.channel_purge(name))}, yes=yes, as_json=as_json
    )
