"""`menzil bridge run`: take records until told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Sequence

import click

from menzil.bridge.log import LOGGER
from menzil.bridge.runner import BridgeGoneError, Progress, Runner
from menzil.bridge.source import SourceError
from menzil.cli.bridge.config import described
from menzil.cli.database import Database, connect, demand, located
from menzil.cli.dsn import dsn_option
from menzil.cli.lazy import COULD_NOT, SOMETHING_TO_FIX
from menzil.cli.show import count, document, json_option, say
from menzil.model.errors import MenzilError, UsageError
from menzil.ops import bridges
from menzil.telemetry.logs import FORMATS, log_to_stderr

#: Seconds after which a line says how far a bridge is.
EVERY = 10.0


@click.command()
@click.argument("names", nargs=-1)
@dsn_option
@click.option("--once", is_flag=True, help="Take what the source has now, then end.")
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="JSON has one object a line.")
@click.option("--verbose", "-v", is_flag=True, help="Say more.")
@json_option
def run(names: Sequence[str], dsn: str | None, once: bool, log_format: str, verbose: bool, as_json: bool) -> None:
    """Run the bridges NAMES, or all of them, until SIGTERM or SIGINT.

    Several processes may run one bridge: each record is taken once. With --once the exit code is 1 if records became
    dead letters or were missing in the source, or if a bridge is paused. Events go to standard error, one per line.
    """
    level = logging.DEBUG if verbose else logging.INFO
    log_to_stderr((LOGGER.name,), log_format, level=level)
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    with located(dsn, migrated=True) as found:
        with connect(found) as conn:
            demand(conn, found)
            db = Database(conn)
            chosen = [described(db, name)["name"] for name in dict.fromkeys(names)]
            every = chosen or [one["name"] for one in db.run(bridges.bridges(1000))]
        if not every:
            raise UsageError("There are no bridges.", hint="make one with `menzil bridge create`")
        crew = [Runner(name, found, once=once) for name in every]
        failed = asyncio.run(_run(crew))
    for name, error in failed.items():
        say(f"Bridge {name}: {error}")
    done = {runner.name: runner.progress for runner in crew}
    if once:
        _tell(done, as_json)
    # A crontab line that takes nothing because of a pause must not look like one that found nothing.
    left = any(one.refused or one.lost or one.paused for one in done.values())
    click.get_current_context().exit(COULD_NOT if failed else SOMETHING_TO_FIX if once and left else 0)


async def _run(crew: Sequence[Runner]) -> dict[str, str]:
    """Run them side by side; return those that ended with an error."""
    stop, failed = asyncio.Event(), {}
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    async def one(runner: Runner) -> None:
        try:
            await runner.run(stop)
        except (BridgeGoneError, SourceError) as error:
            failed[runner.name] = str(error)
        except MenzilError as error:
            failed[runner.name] = " ".join(part for part in (error.message, error.hint) if part)

    progress = asyncio.create_task(_progress(crew))
    try:
        await asyncio.gather(*(one(runner) for runner in crew))
    finally:
        progress.cancel()
    return failed


async def _progress(crew: Sequence[Runner]) -> None:
    from menzil.bridge.log import say as line

    told = {runner.name: 0 for runner in crew}
    while True:
        await asyncio.sleep(EVERY)
        for runner in crew:
            done = runner.progress
            if done.taken + done.refused != told[runner.name]:
                told[runner.name] = done.taken + done.refused
                line(
                    logging.INFO, "progress", bridge=runner.name, taken=done.taken, refused=done.refused, lost=done.lost
                )


def _tell(done: dict[str, Progress], as_json: bool) -> None:
    if as_json:
        keys = ("taken", "refused", "lost", "paused")
        document([{"name": name} | {key: getattr(one, key) for key in keys} for name, one in done.items()])
        return
    for name, one in done.items():
        words = [count(one.taken, "record") + " taken"]
        words += [count(one.refused, "became a dead letter", "became dead letters")] if one.refused else []
        words += [f"{one.lost:,} missing in the source"] if one.lost else []
        words += ["because it is paused"] if one.paused else []
        say(f"Bridge {name}: {', '.join(words)}.")
