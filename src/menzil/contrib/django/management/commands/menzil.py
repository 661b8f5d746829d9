"""`manage.py menzil …`: the menzil command on a database of Django. `worker` runs tasks and handlers of the project."""

from __future__ import annotations

import logging
import sys
import threading
from argparse import REMAINDER
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Any

import click
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, SystemCheckError
from django.db import connections
from django.utils.autoreload import get_child_arguments

from menzil.cli.lazy import COULD_NOT
from menzil.cli.main import main
from menzil.cli.worker import Host
from menzil.contrib.django import conf
from menzil.ops.choosing import variable_set
from menzil.worker.log import LOGGER
from menzil.worker.threads import NAME

#: What a worker writes its lines to.
LOGGERS = (LOGGER, logging.getLogger("menzil.database"))
#: Options of Django's own, with a value; manage.py has read the first two before it comes here.
_DJANGOS = ("--settings", "--pythonpath", "--database")


class Command(BaseCommand):
    """The words behind `manage.py menzil` are those of the menzil command."""

    help = "Runs a menzil command on the database of MENZIL: worker, send, dlq list, doctor and all others."
    requires_system_checks: Any = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("words", nargs=REMAINDER, metavar="COMMAND …")

    def run_from_argv(self, argv: list[str]) -> None:
        """Take the words as they are: argparse would keep --help and --version for itself."""
        try:
            self._run(argv[2:])
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except (CommandError, ImproperlyConfigured, SystemCheckError) as error:
            self.stderr.write(str(error))
            sys.exit(COULD_NOT)
        except click.exceptions.Exit as end:
            sys.exit(end.exit_code)
        except click.Abort:
            sys.exit(130)
        finally:
            connections.close_all()

    def handle(self, *args: Any, words: list[str], **options: Any) -> None:
        """call_command("menzil", "worker", "--once"), with stdout= and stderr= as every command takes them."""
        try:
            with ExitStack() as told:
                # The streams as they were given: Django's wrapper ends each write with a new line.
                for name, redirected in (("stdout", redirect_stdout), ("stderr", redirect_stderr)):
                    if options.get(name) is not None:
                        told.enter_context(redirected(options[name]))
                self._run(words)
        except click.ClickException as error:
            raise CommandError(error.format_message()) from error
        except click.exceptions.Exit as end:
            if end.exit_code:
                raise CommandError(f"menzil {' '.join(words)} ended with {end.exit_code}.") from end

    def _run(self, given: list[str]) -> None:
        words, djangos, alias = _split(given)
        if any(word == "--dsn" or word.startswith("--dsn=") for word in words):
            raise CommandError("manage.py menzil takes the database from Django: write --database ALIAS, not --dsn.")
        dsn = conf.dsn(alias)
        app = "menzil.contrib.django.worker:app"
        if words[:1] == ["worker"]:
            self.check(databases=[alias])
            from menzil.contrib.django.worker import prepare

            if connections[alias].in_atomic_block:
                raise CommandError(
                    "A worker sees what is committed. Run it in a TransactionTestCase, outside atomic()."
                )
            prepare(alias)
            connections.close_all()  # the threads of the worker open connections of their own
        hears = [list(one.handlers) for one in LOGGERS]
        try:
            host = Host(app, (*_this_program(), "menzil", *djangos), tuple(words))
            # The variable is read by every command, and by the children of --processes.
            with variable_set(dsn, f"DATABASES[{alias!r}] of Django"):
                code = main.main(args=words, prog_name="manage.py menzil", standalone_mode=False, obj=host)
        finally:
            for one, handlers in zip(LOGGERS, hears, strict=True):
                one.handlers[:] = handlers  # a second call in this process would say everything twice
            _wait_for_threads()
        if isinstance(code, int) and code:
            raise click.exceptions.Exit(code)


def _this_program() -> list[str]:
    """Return what stands between the Python and the name of a command where this program is started once more."""
    try:
        start = [*get_child_arguments()[1:]]
    except RuntimeError:  # no script is running: `python -c`, standard input, uWSGI, mod_wsgi
        return ["-m", "django"]
    return start[: len(start) - len(sys.argv) + 1]


def _wait_for_threads() -> None:
    """Wait until the threads of a worker have closed their connections: a test drops its database afterwards."""
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.join(5)


def _split(given: list[str]) -> tuple[list[str], list[str], str]:
    """Return the words of menzil, Django's own options, and the alias of the database."""
    words: list[str] = []
    djangos: list[str] = []
    alias, left = conf.database(), iter(given)
    for word in left:
        name, equals, value = word.partition("=")
        if name not in _DJANGOS:
            words.append(word)
            continue
        value = value if equals else next(left, "")
        djangos.append(f"{name}={value}")
        if name == "--database":
            alias = value
    if alias not in connections:
        raise CommandError(f"DATABASES has no {alias!r}. {conf.nearest(alias, connections)}")
    return words, djangos, alias
