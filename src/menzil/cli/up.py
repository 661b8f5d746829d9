"""`menzil up`: a database, a worker and the console, with one command."""

from __future__ import annotations

import http.client
import os
import socket
from contextlib import closing, suppress
from importlib.util import find_spec
from typing import Any

import click

from menzil.cli.crew import Crew
from menzil.cli.database import connect, located
from menzil.cli.dsn import dsn_option
from menzil.cli.show import say
from menzil.install import check, migrate
from menzil.model.errors import UsageError
from menzil.ops.choosing import VARIABLE

HOST = "127.0.0.1"
PORT = 8642
#: Seconds until the console must answer.
PATIENCE = 30.0


@click.command()
@click.argument("app", metavar="[MODULE:APP]", required=False)
@dsn_option
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--channels", metavar="NAMES", help="Serve only these handlers and endpoints, separated by commas.")
@click.option("--concurrency", type=click.IntRange(1), metavar="N", help="Deliveries at once.  [default: 100]")
@click.option("--no-console", is_flag=True, help="Database and worker alone.")
@click.option("--verbose", "-v", is_flag=True, help="Let the worker say more.")
@click.pass_context
def up(
    ctx: click.Context,
    app: str | None,
    dsn: str | None,
    port: int,
    channels: str | None,
    concurrency: int | None,
    no_console: bool,
    verbose: bool,
) -> None:
    """Start a database, a worker and the console, and print the address of the console.

    The embedded PostgreSQL is started when no database is chosen, and menzil is installed there or brought up to date.
    MODULE:APP is a menzil.Worker with handlers, as for `menzil worker`. Ctrl-C stops the worker, then the console, then
    the database; a second one lets the worker hand everything back at once. The console listens on this machine alone.
    """
    door = None
    if not no_console:
        _demand_console()
        door = _listen(port)
        port = int(door.getsockname()[1])
    worker = ["worker", *([app] if app else []), *_given("--channels", channels), *_given("--concurrency", concurrency)]
    worker += ["--verbose"] if verbose else []
    with located(dsn, migrated=True) as found:
        _install(found)
        # A DSN may hold a password, and every user of this machine can read command lines. One that was typed on this
        # command line decides over the program of the worker, so it is passed on as it was typed.
        typed = [] if dsn is None else ["--dsn", dsn]
        with Crew({**os.environ, VARIABLE: found}) as crew:
            crew.start("worker", [*worker, *typed])
            if door is not None:
                console = ["console", "--no-greeting", "--host", HOST, "--port", str(port), *typed]
                with door:
                    crew.start("console", console, door)
                if crew.wait_until(lambda: _answers(port), PATIENCE):
                    click.echo(f"http://{HOST}:{port}/")
                elif not crew.told_to_stop and crew.ended() is None:
                    say(f"The console is slow to start: look at http://{HOST}:{port}/ in a moment.")
            admin = " The console lets in every user of this machine, as admin." if door is not None else ""
            say(f"Ctrl-C stops everything.{admin}")
            code = crew.watch()
            if crew.told_to_stop:
                say("Stopping: the worker, then the rest.")
    ctx.exit(code)


def _given(option: str, value: Any) -> list[str]:
    return [] if value is None else [option, str(value)]


def _demand_console() -> None:
    if any(find_spec(name) is None for name in ("starlette", "uvicorn", "jinja2", "menzil.console.app")):
        raise UsageError(
            "The console needs packages that are not installed.",
            hint="pip install 'menzil[console]', or go without it: menzil up --no-console",
        )


def _listen(port: int) -> socket.socket:
    """Take the port before anything is started, so that no other `menzil up` answers for this one."""
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as error:
        hint = "choose another one with --port, or a free one with --port 0"
        raise UsageError(
            f"Port {port} of this machine cannot be used: {os.strerror(error.errno or 0)}.", hint=hint
        ) from None


def _install(dsn: str) -> None:
    with connect(dsn) as conn:
        found = check(conn)
    if found.verdict != "ok":
        migrate(dsn)
        say("menzil is installed." if found.verdict == "missing" else "menzil is brought up to date.")


def _answers(port: int) -> bool:
    asked = http.client.HTTPConnection(HOST, port, timeout=2)
    with closing(asked), suppress(OSError, http.client.HTTPException):
        asked.request("GET", "/healthz")
        return asked.getresponse().status in (200, 503)
    return False
