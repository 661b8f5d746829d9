"""Who runs a command, for the event log: --actor, else MENZIL_ACTOR, else the user and the machine."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

VARIABLE = "MENZIL_ACTOR"
_GIVEN = "menzil.actor"


def actor_option(command: Command) -> Command:
    """Give the command of all commands the option --actor."""

    def keep(context: click.Context, _parameter: click.Parameter, given: str | None) -> None:
        context.meta[_GIVEN] = given

    help_text = f"Who does it, as the event log shows it.  [default: {VARIABLE}, else user@host]"
    return click.option("--actor", metavar="NAME", expose_value=False, callback=keep, help=help_text)(command)


def actor() -> str:
    """Return the name that the event log shows."""
    context = click.get_current_context(silent=True)
    given = None if context is None else context.meta.get(_GIVEN)
    return given or os.environ.get(VARIABLE) or f"{_user()}@{socket.gethostname()}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run an account that has no name
        return f"uid {os.getuid()}"
