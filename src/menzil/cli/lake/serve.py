"""`menzil lake serve`: a read-only Iceberg REST catalog."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import click

from menzil.cli.database import connect, demand, located
from menzil.cli.dsn import dsn_option
from menzil.cli.show import say
from menzil.console import demand_extra
from menzil.model.errors import UsageError
from menzil.telemetry.logs import FORMATS, log_to_stderr


@click.command()
@dsn_option
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen at.")
@click.option("--port", type=click.IntRange(0, 65535), default=8643, show_default=True, help="0 takes a free one.")
@click.option("--token", "tokens", multiple=True, metavar="NAME:ROLE:SHA256", help="Who may attach; may be repeated.")
@click.option("--tokens-file", type=click.Path(path_type=Path), metavar="FILE", help="The same, one per line.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="Answer to this name, too.")
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="JSON has one object a line.")
def serve(
    dsn: str | None,
    host: str,
    port: int,
    tokens: Sequence[str],
    tokens_file: Path | None,
    hosts: Sequence[str],
    log_format: str,
) -> None:
    """Serve the catalog of the lake until SIGTERM or SIGINT.

    DuckDB, Spark, Trino and others attach to it. Without a token it listens on this machine alone. It never writes, and
    serves no data: engines read the files of the lake by themselves, with their own credentials.
    """
    demand_extra()
    from menzil.cli.console import VARIABLE, token_lines
    from menzil.console.hosts import is_loopback

    lines = [*tokens, *os.environ.get(VARIABLE, "").split(), *token_lines(tokens_file)]
    if not lines and not is_loopback(host):
        sentence = f"{host} is not this machine alone, and there is no token: every client could look."
        raise UsageError(sentence, hint="make one with `menzil console --new-token NAME:viewer`, then give --token")
    from menzil.console.catalog_app import CatalogApp
    from menzil.console.door import local_access
    from menzil.console.running import serve as serve_app

    log_to_stderr(("menzil.console", "menzil.database", "uvicorn"), log_format, level=logging.WARNING)
    with located(dsn, migrated=True) as found:
        with connect(found) as conn:
            demand(conn, found)
        names = [*hosts, *([host] if host not in ("0.0.0.0", "::") else [])]
        app = CatalogApp(found, tokens=lines, local=None if lines else local_access(), hosts=names)
        serve_app(app, host, port, lambda bound: _greet(host, bound))


def _greet(host: str, port: int) -> None:
    shown = f"[{host}]" if ":" in host else host
    say(f"The catalog of the lake is at http://{shown}:{port}")
