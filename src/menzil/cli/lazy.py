"""A click group that imports a command when it is called, not when it is listed.

`menzil --help` answers without importing a worker, a web server or Spark, and a command whose extra is not installed
does not stop the other commands. The table carries the line that --help shows; the command keeps its own longer help.
Errors of menzil and of the database leave as one sentence and one hint on stderr with exit code 2; any other error is
a bug and keeps its traceback.
"""

from __future__ import annotations

import errno
import os
import sys
from difflib import get_close_matches
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from menzil.model.errors import MenzilError, translate

if TYPE_CHECKING:
    import psycopg

#: What a write to a disk says that is full, or gone.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
#: Exit codes: the command did its work and found something to fix, or it could not do its work at all.
SOMETHING_TO_FIX = 1
COULD_NOT = 2


class Place(NamedTuple):
    """Where a command lives, as "module:object", and the line that stands for it in --help."""

    target: str
    help: str


class CouldNotError(click.ClickException):
    """An error of menzil on its way to stderr."""

    exit_code = COULD_NOT

    def __init__(self, error: MenzilError) -> None:
        super().__init__(error.message)
        self.hint = error.hint

    def show(self, file: IO[Any] | None = None) -> None:
        super().show(file)
        if self.hint:
            click.echo(f"Hint: {self.hint}", file=file, err=file is None)


class LazyGroup(click.Group):
    """A group whose commands are places in a table."""

    def __init__(self, *args: Any, places: dict[str, Place], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *self.places})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = place.target.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command), f"{place.target} is not a click command"
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # click knows only commands that are imported.
            near = get_close_matches(args[0], self.places, 1)
            if not near:
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx) from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names from the table; click would import every command to ask for its help."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self.places[name].help) for name in names if name in self.places]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.places[name].help) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MenzilError as error:
            raise CouldNotError(error) from error
        except OSError as error:
            if error.errno not in _FULL or error.filename is not None:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python writes what is left when it ends
            raise CouldNotError(MenzilError(f"The output cannot be written: {error.strerror}.")) from error
        except Exception as error:
            # --help and the completion of commands need no psycopg, whose import takes longer than all the rest.
            driver = sys.modules.get("psycopg")
            if driver is None or not isinstance(error, driver.Error):
                raise
            raise CouldNotError(explained(error)) from error


def explained(error: psycopg.Error) -> MenzilError:
    """What the server said, also when menzil has no class for it: a timeout, a deadlock, a full disk."""
    known = translate(error)
    if known is not None:
        return known
    sentence = error.diag.message_primary or str(error).strip() or type(error).__name__
    return MenzilError(f"The database could not: {sentence}.", sqlstate=error.sqlstate, hint=error.diag.message_hint)
