"""`menzil console`: the operator's seat in a browser."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from menzil.cli.database import connect, demand, located
from menzil.cli.dsn import dsns_options, several_of
from menzil.cli.lifeline import listener
from menzil.cli.show import say
from menzil.console import demand_extra
from menzil.model.errors import UsageError
from menzil.model.redact import Redactor
from menzil.telemetry.logs import FORMATS, log_to_stderr

if TYPE_CHECKING:
    from menzil.console.access import Payloads

VARIABLE = "MENZIL_CONSOLE_TOKENS"


@click.command()
@dsns_options
@click.option("--acts-dsn", metavar="DSN", help="Database again, as a role that may act.  [default: --dsn]")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True, help="0 takes a free one.")
@click.option("--token", "tokens", multiple=True, metavar="NAME:ROLE:SHA256", help="Who may log in; may be repeated.")
@click.option("--tokens-file", type=click.Path(path_type=Path), metavar="FILE", help="The same, one per line.")
@click.option("--new-token", metavar="NAME:ROLE", help="Print a new token and its line for the list, then end.")
@click.option("--read-only", is_flag=True, help="Register no acts: nothing can be changed from here.")
@click.option("--payloads", type=click.Choice(["show", "redact", "hide"]), help="Most of payloads that is shown.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Answer to this name, too.")
@click.option("--prefix", default="", metavar="/PATH", help="Path below which a proxy shows the console.")
@click.option("--metrics-token", metavar="SHA256", help="Serve /metrics to clients with the token of this digest.")
@click.option("--trace-url", metavar="URL", help="Link of a trace, with {trace_id} in it.")
@click.option("--lake", metavar="PATH", help="Lake whose manifests the lake page shows.")
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="JSON has one object a line.")
@click.option("--no-greeting", is_flag=True, hidden=True, help="`menzil up` greets itself.")
def console(
    dsns: Sequence[str],
    dsn_file: Path | None,
    acts_dsn: str | None,
    host: str,
    port: int,
    tokens: Sequence[str],
    tokens_file: Path | None,
    new_token: str | None,
    read_only: bool,
    payloads: Payloads | None,
    hosts: Sequence[str],
    prefix: str,
    metrics_token: str | None,
    trace_url: str | None,
    lake: str | None,
    log_format: str,
    no_greeting: bool,
) -> None:
    """Serve the console until SIGTERM or SIGINT.

    Without a token it listens on this machine alone, and a person who reaches it is you, as admin. With tokens,
    people log in: viewer (no payloads), reader (redacted payloads), operator (acts), admin (settings and secrets).
    """
    demand_extra()
    from menzil.console.hosts import is_loopback

    if new_token is not None:
        _print_token(new_token)
        return
    lines = [*tokens, *os.environ.get(VARIABLE, "").split(), *token_lines(tokens_file)]
    if not lines and not is_loopback(host):
        sentence = f"{host} is not this machine alone, and there is no token: every client could act."
        raise UsageError(sentence, hint="make one with `menzil console --new-token NAME:ROLE`, then give --token")
    from menzil.console import Console, Consoles
    from menzil.console.door import local_access
    from menzil.console.running import serve

    loggers = ("menzil.console", "menzil.metrics", "menzil.database", "uvicorn")
    log_to_stderr(loggers, log_format, level=logging.WARNING, redact=Redactor().text)
    options: dict[str, Any] = {
        "tokens": lines, "local": None if lines else local_access(), "read_only": read_only, "payloads": payloads,
        "hosts": [*hosts, *([host] if host not in ("0.0.0.0", "::") else [])], "prefix": prefix.rstrip("/"),
        "metrics_token": metrics_token, "metrics_open": is_loopback(host), "trace_url": trace_url, "lake": lake,
    }  # fmt: skip

    def ready(bound: int) -> None:
        if not no_greeting:
            _greet(host, bound, prefix, bool(lines))

    named = several_of(dsns, dsn_file)
    if named is not None:
        if acts_dsn is not None:
            raise UsageError("--acts-dsn is for a console with one database.", hint="leave it out")
        # Not asked first, as one database is: one that is down must not keep the others from being shown.
        serve(Consoles({one.name: one.dsn for one in named}, **options), host, port, ready, listener())
        return
    with located(dsns[0] if dsns else None, migrated=True) as found:
        with connect(found) as conn:
            demand(conn, found)
        serve(Console(found, acts_dsn=acts_dsn, **options), host, port, ready, listener())


def token_lines(file: Path | None) -> list[str]:
    """The lines of a token list."""
    if file is None:
        return []
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"The token list {file} cannot be read: {error}.") from None


def _print_token(wanted: str) -> None:
    from menzil.console.tokens import make

    name, _, role = wanted.partition(":")
    if not name or not role:
        raise UsageError(f"{wanted!r} is not NAME:ROLE.", hint="write --new-token ada:operator")
    token, line = make(name, role)
    say("Give the first line to the person, and the second to --token or the token list. The token is not kept.")
    click.echo(f"{token}\n{line}")


def _greet(host: str, port: int, prefix: str, has_tokens: bool) -> None:
    shown = f"[{host}]" if ":" in host else host
    say(f"The console is at http://{shown}:{port}{prefix.rstrip('/')}/")
    from menzil.console.hosts import is_loopback

    if not has_tokens:
        say("A person who reaches it from this machine is admin. Tokens make people log in: see --new-token.")
    elif not is_loopback(host):
        say("Tokens travel in the clear unless a proxy in front of it speaks HTTPS.")
