"""`menzil pg`: start, stop and look at the embedded PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from menzil.cli.lazy import SOMETHING_TO_FIX
from menzil.embedded import Embedded
from menzil.embedded.control import Status
from menzil.embedded.control import status as look
from menzil.embedded.control import stop as stop_server
from menzil.embedded.dsn import socket_dsn, tcp_dsn
from menzil.embedded.holders import User
from menzil.embedded.places import data_dir as choose_data_dir

Command = TypeVar("Command", bound=Callable[..., Any])


def data_dir_option(command: Command) -> Command:
    """Give a click command the option --data-dir, as its parameter `data_dir`."""
    return click.option(
        "--data-dir",
        metavar="DIRECTORY",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where the server keeps its data.  [default: MENZIL_PG_DIR, else menzil/pg in the user's data directory]",
    )(command)


@click.group()
def pg() -> None:
    """Start, stop and look at the embedded PostgreSQL.

    Commands and programs that need it start it by themselves and it stops after them; `start` keeps it running.
    """


@pg.command()
@data_dir_option
def start(data_dir: Path | None) -> None:
    """Start the server, keep it running until `stop`, and print its connection string."""
    with Embedded(data_dir) as server:
        server.pin()
        click.echo(f"PostgreSQL {server.version} runs in {server.data_dir} until `menzil pg stop`.", err=True)
        click.echo(server.dsn)


@pg.command()
@data_dir_option
@click.option("--force", is_flag=True, help="Stop it even while a program uses it.")
@click.pass_context
def stop(ctx: click.Context, data_dir: Path | None, force: bool) -> None:
    """Stop the server, unless a program still uses it: then it stops after that."""
    directory = choose_data_dir(data_dir)
    found = look(directory)
    keeping = stop_server(directory, force=force)
    if keeping:
        click.echo(f"Still used by {_names(keeping)}; it stops after them.", err=True)
        click.echo("Hint: end them, or use --force", err=True)
        ctx.exit(SOMETHING_TO_FIX)
    click.echo(f"Stopped the server in {directory}." if found else f"No server runs in {directory}.", err=True)


@pg.command()
@data_dir_option
@click.option("--socket", is_flag=True, help="Over the Unix socket instead of TCP.")
@click.pass_context
def dsn(ctx: click.Context, data_dir: Path | None, socket: bool) -> None:
    """Print the connection string of the running server, password included."""
    found = _look(ctx, data_dir)
    click.echo((socket_dsn if socket else tcp_dsn)(found.home, found.port))


@pg.command()
@data_dir_option
@click.option("--json", "as_json", is_flag=True, help="As a JSON object.")
@click.pass_context
def status(ctx: click.Context, data_dir: Path | None, as_json: bool) -> None:
    """Say whether the server runs: exit code 0 if it does, 1 if not."""
    directory = choose_data_dir(data_dir)
    found = look(directory)
    if as_json:
        click.echo(json.dumps(_describe(directory, found), ensure_ascii=False))
    elif found:
        keeps = ", pinned" if found.pinned else ""
        click.echo(f"PostgreSQL {found.version} runs in {directory}: pid {found.pid}, port {found.port}{keeps}.")
        click.echo(f"Used by {_names(found.users)}." if found.users else "No process uses it.")
        if not found.durable:
            click.echo("It was started for tests: a power cut may destroy its data.")
    else:
        click.echo(f"No server runs in {directory}.")
    ctx.exit(0 if found else SOMETHING_TO_FIX)


def _look(ctx: click.Context, data_dir: Path | None) -> Status:
    directory = choose_data_dir(data_dir)
    found = look(directory)
    if found is None:
        click.echo(f"No server runs in {directory}.", err=True)
        click.echo("Hint: start one with `menzil pg start`", err=True)
        ctx.exit(SOMETHING_TO_FIX)
    return found


def _describe(directory: Path, found: Status | None) -> dict[str, Any]:
    described: dict[str, Any] = {"running": found is not None, "data_dir": str(directory)}
    if found:
        described |= {
            "version": found.version,
            "pid": found.pid,
            "port": found.port,
            "socket_dir": str(found.home.socket_dir),
            "log": str(found.home.log),
            "durable": found.durable,
            "pinned": found.pinned,
            "supervisor": found.supervisor,
            "users": [user._asdict() for user in found.users],
        }
    return described


def _names(found: list[User]) -> str:
    return ", ".join(f"{user.program} (pid {user.pid})" for user in found)
