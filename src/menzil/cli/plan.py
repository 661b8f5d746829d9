"""Anything that moves many messages says first what it would move, and moves it with --yes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from menzil.cli.show import document, say

Command = TypeVar("Command", bound=Callable[..., Any])


def yes_option(command: Command) -> Command:
    """Give a click command the flag --yes."""
    return click.option("--yes", is_flag=True, help="Do it; without this only the plan is shown.")(command)


def carry_out(
    sentences: list[str], plan: Mapping[str, Any], act: Callable[[], Mapping[str, Any]], *, yes: bool, as_json: bool
) -> None:
    """Show the plan, and with --yes do it and print what was done."""
    for sentence in sentences:
        say(sentence)
    done = act() if yes else None
    if not yes:
        say("Nothing was changed. Add --yes to do it.")
    if as_json:
        document({"plan": plan, "done": done})
    elif done is not None:
        for value in done.values():
            click.echo(value)
