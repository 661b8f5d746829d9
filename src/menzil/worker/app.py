"""The worker somebody writes a program around: its handlers, and how it is run."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from typing import Any

from menzil.model.durations import Seconds, in_seconds
from menzil.model.errors import UsageError
from menzil.model.wire import Loads, json_loads
from menzil.ops import choosing
from menzil.telemetry.tracing import Tracing
from menzil.worker.log import LOGGER
from menzil.worker.options import BYTES, THREADS, Options
from menzil.worker.registering import Registering
from menzil.worker.shift import Shift
from menzil.worker.signals import stop_signals
from menzil.worker.tally import Tally


class Worker(Registering):
    """Delivers messages: to endpoints, and to the handlers you give it."""

    def __init__(
        self,
        dsn: str | choosing.Url | None = None,
        *,
        name: str | None = None,
        concurrency: int = 100,
        threads: int = THREADS,
        lease: Seconds | None = None,
        batch: int | None = None,
        max_bytes: int = BYTES,
        endpoints: bool | None = None,
        channels: list[str] | None = None,
        listen: bool = True,
        prepare: bool = True,
        janitors: bool = True,
        poll: tuple[Seconds, Seconds] | None = None,
        grace: Seconds = 10.0,
        secret_key: str | None = None,
        loads: Loads = json_loads,
        tracing: Tracing | bool = True,
    ) -> None:
        """Describe a worker for `dsn`, else for what MENZIL_DSN, menzil.toml or PG* name, else the embedded PostgreSQL.

        The environment is read when it runs; the search for menzil.toml begins where this worker was made.

        name         shown in the registry and with each attempt; made from host, process and chance unless given
        concurrency  deliveries at once: of endpoints, and as many of async handlers without a concurrency of their own
        threads      plain functions at once, of those without a concurrency of their own
        lease        seconds until a silent worker loses a message; 30 for handlers, stale_recovery_timeout for others
        batch        most messages of one lease
        max_bytes    bytes of the bodies of all messages in this worker's hands, about
        endpoints    whether to deliver to endpoints, too; yes unless False
        channels     only these: names of handlers' channels, or of endpoints
        listen       whether to wait for NOTIFY besides polling
        prepare      False prepares no statements; found out by itself behind a PgBouncer before 1.21
        janitors     whether to do jobs of housekeeping: expiry, retention, schedules and the like
        poll         shortest and longest pause between two polls, in seconds
        grace        seconds that deliveries under way may take to finish when the worker stops
        secret_key   decrypts secrets of endpoints; MENZIL_SECRET_KEY unless given
        loads        another JSON library
        tracing      how messages become spans in a program that has installed an OpenTelemetry SDK; False: not at all
        """
        super().__init__()
        # What is not a connection string is refused now, not when it runs.
        self._dsn = None if dsn is None else choosing.given(dsn, "the argument dsn of Worker()")
        self._directory = choosing.here()
        self._options = Options(
            name=name,
            concurrency=concurrency,
            threads=threads,
            lease=in_seconds("lease", lease),
            batch=batch,
            max_bytes=max_bytes,
            endpoints=endpoints is not False,
            channels=channels,
            listen=listen,
            prepare=prepare,
            janitors=janitors,
            poll=None if poll is None else (in_seconds("poll", poll[0]), in_seconds("poll", poll[1])),
            grace=in_seconds("grace", grace),
            secret_key=secret_key,
            loads=loads,
            tracing=tracing,
        )
        self._options.check()
        self._shift: Shift | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, *, once: bool = False) -> Tally:
        """Work until SIGTERM, SIGINT or SIGHUP; with `once`, until nothing is due. Blocks; returns what was done."""
        # What the program has loaded stays: the collector need not look at it again and again. Messages come and go by
        # the thousand without cycles: it need not look as often, either.
        gc.freeze()
        gc.set_threshold(5000)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(self._run(once))

    async def serve(self, *, once: bool = False) -> Tally:
        """Work inside a program that has an event loop of its own, until stop() is called."""
        if self._shift is not None:
            raise UsageError("This worker runs already.")
        self._loop = asyncio.get_running_loop()
        with _database(self.dsn) as dsn:
            shift = self._shift = Shift(dsn, self._handlers, self._options, self._hooks, once=once)
            try:
                return await shift.run()
            finally:
                self._shift = None

    def stop(self, *, force: bool = False) -> None:
        """Stop leasing and finish what is under way; with `force`, or when called again, hand it back at once.

        May be called from any thread.
        """
        shift, loop = self._shift, self._loop
        if shift is not None and loop is not None:
            loop.call_soon_threadsafe(lambda: shift.stop(force=force))

    @property
    def started(self) -> bool:
        """Whether it works now, or waits for a copy of a database to be adopted."""
        return self._shift is not None and (self._shift.started or self._shift.standstill.told)

    def override(self, dsn: str | None, **options: Any) -> None:
        """Let a command line have the last word; None leaves a value as it is."""
        given = {name: value for name, value in options.items() if value is not None}
        self._options = replace(self._options, **given)
        self._options.check()
        if dsn is not None:
            self._dsn = choosing.given(dsn, "the option --dsn")

    @property
    def name(self) -> str | None:
        """The name it was given; None is made up when it runs."""
        return self._options.name

    @property
    def dsn(self) -> str | None:
        """Where it works; None is an embedded PostgreSQL."""
        return choosing.choose(self._dsn, directory=self._directory)

    async def _run(self, once: bool) -> Tally:
        loop = asyncio.get_running_loop()
        # Only the main thread hears signals.
        numbers = stop_signals() if threading.current_thread() is threading.main_thread() else ()
        for number in numbers:
            loop.add_signal_handler(number, self._signalled, number)
        try:
            return await self.serve(once=once)
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _signalled(self, number: int) -> None:
        LOGGER.info("signal name=%s", signal.Signals(number).name)
        if number != signal.SIGHUP or not (self._shift and self._shift.stopping):
            self.stop()


def _database(dsn: str | None) -> AbstractContextManager[str]:
    if dsn is not None:
        return nullcontext(dsn)
    # By name, at run time: starting joins the rooms `embedded` and `install`, which this room may not import.
    share: AbstractContextManager[str] = import_module("menzil.embed").open_embedded()
    return share


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
