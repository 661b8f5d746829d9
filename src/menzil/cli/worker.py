"""`menzil worker`: deliver messages to endpoints and handlers until told to stop."""

from __future__ import annotations

import asyncio
import importlib
import logging
import resource
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from menzil.cli.dsn import dsns_options, several_of
from menzil.cli.finite import Finite
from menzil.model.errors import MenzilError, UsageError
from menzil.telemetry.logs import FORMATS, log_to_stderr
from menzil.telemetry.serving import Listen
from menzil.worker import Worker
from menzil.worker.family import Family
from menzil.worker.log import LOGGER

#: Whose lines a traceback has before those of a module that failed.
_WAY_THERE = (__file__, importlib.__file__)


@dataclass(frozen=True)
class Host:
    """A program that runs this command inside itself, as the context object of click: `manage.py` does.

    `app` is the worker that is run where the command line names none. `command` starts a child of --processes, behind
    the name of the Python; the words of `menzil` follow it. `words` are those of this command.
    """

    app: str
    command: tuple[str, ...]
    words: tuple[str, ...]


@click.command()
@click.argument("app", metavar="[MODULE:APP]", required=False)
@dsns_options
@click.option("--channels", metavar="NAMES", help="Serve only these handlers and endpoints, separated by commas.")
@click.option("--concurrency", type=click.IntRange(1), metavar="N", help="Deliveries at once.  [default: 100]")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Plain functions at once.  [default: 10]")
@click.option("--processes", type=click.IntRange(1), default=1, metavar="N", help="Run so many workers.")
@click.option("--once", is_flag=True, help="Deliver what is due, then end.")
@click.option("--name", metavar="NAME", help="Name of the worker.  [default: host, process and chance]")
@click.option("--lease", type=Finite(1, 604_800), metavar="SECONDS", help="How long a message stays ours in silence.")
@click.option("--batch", type=click.IntRange(1, 10_000), metavar="N", help="Most messages of one lease.")
@click.option("--max-bytes", type=click.IntRange(1), metavar="N", help="Bytes of messages at once.  [default: 64 MiB]")
@click.option("--grace", type=Finite(0), metavar="SECONDS", help="Time to finish at the end.  [default: 10]")
@click.option("--no-listen", is_flag=True, help="Poll only, without waiting for NOTIFY.")
@click.option("--no-prepare", is_flag=True, help="Prepare no statements (PgBouncer before 1.21).")
@click.option("--no-janitors", is_flag=True, help="Leave the jobs of housekeeping to other workers.")
@click.option("--no-endpoints", is_flag=True, help="Serve handlers only.")
@click.option("--metrics-port", type=click.IntRange(0, 65535), metavar="PORT", help="Serve /metrics of this worker.")
@click.option("--metrics-host", metavar="ADDRESS", help="Where to.  [default: 127.0.0.1]")
@click.option("--metrics-token", metavar="SHA256", help="Serve it to clients with the token of this digest.")
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="JSON has one object a line.")
@click.option("--verbose", "-v", is_flag=True, help="Say more.")
def worker(
    app: str | None, dsns: Sequence[str], dsn_file: Path | None, processes: int, once: bool, **given: Any
) -> None:
    """Deliver messages to endpoints and handlers until SIGTERM, SIGINT or SIGHUP.

    A second SIGTERM or SIGINT hands everything back at once. MODULE:APP is a menzil.Worker with handlers; without it,
    endpoints are delivered to. Events go to standard error, one per line. Several --dsn, or --dsn-file, let it serve
    several databases; SIGHUP then reads the file again.
    """
    level = logging.DEBUG if given.pop("verbose") else logging.INFO
    log_to_stderr((LOGGER.name, "menzil.database"), given.pop("log_format"), level=level)
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # of a lost connection our own line is enough
    host = click.get_current_context().find_object(Host)
    found = _find(host.app if host and not app else app)
    named = several_of(dsns, dsn_file)
    dsn: Any = {one.name: one.dsn for one in named} if named else dsns[0] if dsns else None
    _override(found, None if dsn_file else dsn, dsn_file, given)
    if processes > 1:
        commands = _commands(processes, given["name"], given["metrics_port"], host)
        family = Family(commands, reloads=found.has_file)
        click.get_current_context().exit(asyncio.run(family.run()))
    _open_many()
    found.run(once=once)


def _open_many() -> None:
    """Each delivery under way is a connection; the soft limit of open files is often only 1024."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _find(app: str | None) -> Worker:
    if app is None:
        return Worker()
    module, _, name = app.partition(":")
    if not name or not _is_module(module):
        # ./shop/tasks.py:app, as a shell completes it
        meant = module.removesuffix(".py").lstrip("./").replace("/", ".")
        example = f"{meant}:{name or 'app'}" if _is_module(meant) else "shop.tasks:app"
        raise UsageError(f"{app!r} does not name a worker.", hint=f"write MODULE:APP, such as {example}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise _failed(module, error) from None  # it is there, and something it needs is not
        raise UsageError(f"There is no module {module!r} here.", hint="run this where it can be imported") from None
    except SystemExit as error:
        # Taken at its word, a sys.exit(0) would look like a worker that has done its work.
        raise UsageError(
            f"The module {module!r} ended the program while it was imported: sys.exit({error.code!r}).",
            hint='what only a script does belongs behind `if __name__ == "__main__":`',
        ) from None
    except MenzilError:
        raise  # a sentence and a hint already
    except Exception as error:
        raise _failed(module, error) from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise UsageError(f"The module {module!r} has no {name!r}.", hint=_workers_of(module))
        found = getattr(found, part)
    if not isinstance(found, Worker):
        raise UsageError(f"{app} is a {type(found).__name__}, not a menzil.Worker.", hint=_workers_of(module))
    return found


def _failed(module: str, error: Exception) -> UsageError:
    """Print the traceback from the first line of the module on, without the way there, and return what to raise."""
    own = error.__traceback__
    while own is not None and (
        own.tb_frame.f_code.co_filename in _WAY_THERE or "<frozen" in own.tb_frame.f_code.co_filename
    ):
        own = own.tb_next
    traceback.print_exception(type(error), error, own)
    sentence = f"The module {module!r} failed while it was imported: {type(error).__name__}."
    return UsageError(sentence, hint="the lines above say where")


def _workers_of(module: str) -> str:
    """What could have been meant: the workers that the module has."""
    names = [name for name, value in vars(importlib.import_module(module)).items() if isinstance(value, Worker)]
    if not names:
        return f"{module} has no worker: write `app = menzil.Worker()` there, and its handlers below"
    return "write " + " or ".join(f"{module}:{name}" for name in names)


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _override(app: Worker, dsn: Any, dsn_file: Path | None, given: dict[str, Any]) -> None:
    channels = given["channels"]
    names = None if channels is None else [name.strip() for name in channels.split(",") if name.strip()]
    if names == []:
        raise UsageError("--channels names nothing.", hint="write --channels emails,webhooks")
    port, host, token = (given[f"metrics_{name}"] for name in ("port", "host", "token"))
    if port is None and (host is not None or token is not None):  # the program would serve no metrics, and not say so
        option = "--metrics-token" if host is None else "--metrics-host"
        raise UsageError(f"{option} goes with --metrics-port.", hint="add --metrics-port 9470")
    metrics = None if port is None else Listen(port, "127.0.0.1" if host is None else host, token)
    off = {name: False for name in ("listen", "prepare", "janitors", "endpoints") if given[f"no_{name}"]}
    values = {name: given[name] for name in ("concurrency", "threads", "name", "lease", "batch", "max_bytes", "grace")}
    # The command line decides, then the program, then the environment, which the worker asks by itself.
    app.override(dsn, dsn_file=dsn_file, options={"channels": names, "metrics": metrics, **values, **off})


def _commands(processes: int, name: str | None, port: int | None = None, host: Host | None = None) -> list[list[str]]:
    """Return the command lines of the children: ours, without --processes, each with a name and a port of its own."""
    own = ("--processes", "--name", "--metrics-port")
    ours, skip = [], False
    for word in host.words if host else sys.argv[1:]:
        if skip or word in own:
            skip = not skip
        elif not word.startswith(tuple(f"{option}=" for option in own)):
            ours.append(word)
    names = [[] if name is None else ["--name", f"{name}-{place}"] for place in range(1, processes + 1)]
    ports = [[] if port is None else ["--metrics-port", str(port and port + place)] for place in range(processes)]
    start = host.command if host else ("-m", "menzil")
    return [[*start, *ours, *name, *port] for name, port in zip(names, ports, strict=True)]
