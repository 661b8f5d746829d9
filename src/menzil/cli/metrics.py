"""`menzil metrics`: the numbers of the queue, for people, for programs, and for Prometheus."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from menzil.cli.database import Database, located, permitted
from menzil.cli.dsn import dsns_options, several_of
from menzil.cli.exporting import Scraped, scraping_all
from menzil.cli.lazy import COULD_NOT
from menzil.cli.several import in_turn
from menzil.cli.show import document, json_option, say, table
from menzil.model.errors import UsageError
from menzil.ops import watch
from menzil.ops.databases import Named
from menzil.telemetry.exporter import LOGGER, Exporter
from menzil.telemetry.logs import FORMATS, log_to_stderr
from menzil.telemetry.serving import Listen, Served, new_token

#: Where `--serve` listens unless told otherwise.
PORT = 9469


@click.command()
@json_option
@dsns_options
@click.option("--prometheus", is_flag=True, help="Print them as Prometheus reads them.")
@click.option("--serve", is_flag=True, help="Serve them at /metrics until SIGTERM or SIGINT.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option("--token", metavar="SHA256", help="Serve them to clients with the token of this digest.")
@click.option("--new-token", is_flag=True, help="Print a new token and its digest, then end.")
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="JSON has one object a line.")
def metrics(
    as_json: bool,
    dsns: Sequence[str],
    dsn_file: Path | None,
    prometheus: bool,
    serve: bool,
    host: str,
    port: int,
    token: str | None,
    new_token: bool,
    log_format: str,
) -> None:
    """Print the numbers of the queue as they stand, or serve them to Prometheus."""
    if as_json + prometheus + serve + new_token > 1:
        raise UsageError("--json, --prometheus, --serve and --new-token exclude each other.", hint="choose one")
    if not serve:
        _refuse_alone("host", "port", "token", "log_format")
    named, dsn = several_of(dsns, dsn_file), dsns[0] if dsns else None
    if new_token:
        _print_token()
    elif serve:
        log_to_stderr([LOGGER.name], log_format)
        _serve(dsn, Listen(port, host, token)) if named is None else _serve_all(named, Listen(port, host, token))
    elif prometheus and named is not None:
        _print_all(named)
    elif prometheus:
        with permitted(dsn) as db:
            _, body = Exporter(db.run).render()
        click.echo(body.decode(), nl=False)
    elif named is not None:
        in_turn(named, lambda one: _look(one.dsn, as_json), as_json=as_json)
    else:
        _look(dsn, as_json)


def _refuse_alone(*names: str) -> None:
    """Refuse options of --serve without it: a unit file that forgot it would print the numbers once and end well."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"--{name.replace('_', '-')} goes with --serve.", hint="add --serve, or leave it out")


def _look(dsn: str | None, as_json: bool) -> None:
    with permitted(dsn) as db:
        _show(db, as_json)


def _show(db: Database, as_json: bool) -> None:
    found: list[dict[str, Any]] = [
        {"metric_name": one.name, "metric_value": one.value, "labels": one.labels, "metric_type": one.kind}
        for one in db.run(watch.metrics())
    ]
    if as_json:
        document(found)
        return
    rows = [{**one, "labels": " ".join(f"{name}={value}" for name, value in one["labels"].items())} for one in found]
    table(rows, ["metric_name", "labels", "metric_value"])


def _print_all(named: Sequence[Named]) -> None:
    with scraping_all(named) as exporters:
        _, body = exporters.render()
        missing = [name for name, samples in exporters.samples().items() if not samples.get("menzil_up")]
    click.echo(body.decode(), nl=False)
    if missing:
        say(f"Could not be scraped: {', '.join(missing)}.")
        click.get_current_context().exit(COULD_NOT)


def _serve_all(named: Sequence[Named], listen: Listen) -> None:
    over = _until_told()
    with scraping_all(named) as exporters:
        page = Served(listen, exporters.render)
        say(f"The metrics of {len(named)} databases are at {page.url}")
        over.wait()
        page.close()


def _until_told() -> threading.Event:
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    return over


def _serve(dsn: str | None, listen: Listen) -> None:
    over = _until_told()
    with located(dsn, migrated=True) as found:
        scraped = Scraped(found)
        page = Served(listen, Exporter(scraped.run).render)
        say(f"The metrics are at {page.url}")
        over.wait()
        page.close()
        scraped.close()


def _print_token() -> None:
    token, digest = new_token()
    say("Give the first line to Prometheus, and the second to --token. The token is not kept.")
    click.echo(f"{token}\n{digest}")
