"""A command that moves or deletes many messages shows its plan first, and carries it out with --yes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.cli.show import document, say

Command = TypeVar("Command", bound=Callable[..., Any])


def yes_option(command: Command) -> Command:
    """Give a click command the flag --yes."""
    return click.option("--yes", is_flag=True, help="Do it; without this only the plan is shown.")(command)


def carry_out(
    sentences: list[str], plan: Mapping[str, Any], act: Callable[[], Mapping[str, Any]], *, yes: bool, as_json: bool
) -> None:
    """Show the plan, and with --yes do it and print what was done.

    A plan that is only shown ends with exit code 1 unless a person sits at a terminal: a crontab or a script that
    forgot --yes must not look as if it had done its work.
    """
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
    if not yes and not at_terminal():
        raise SystemExit(SOMETHING_TO_FIX)


def at_terminal() -> bool:
    """Whether the command was typed by a person. cron, systemd and CI give a command no terminal to read from."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
