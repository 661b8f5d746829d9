"""The worker of a user's program: its handlers, and how it is run.

A program that registers handlers imports this module, also where it only sends. The modules that lease and deliver are
loaded when the worker runs.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from menzil.model.durations import Seconds, in_seconds
from menzil.model.errors import UsageError
from menzil.model.wire import Loads, json_loads
from menzil.ops import choosing
from menzil.ops.databases import Given as Several
from menzil.ops.databases import Named, read_file, several
from menzil.ops.dsn import Dsn
from menzil.telemetry.tracing import Tracing
from menzil.worker.options import BYTES, THREADS, Options
from menzil.worker.registering import Registering
from menzil.worker.signals import stop_signals
from menzil.worker.tally import Tally

if TYPE_CHECKING:
    from menzil.worker.company import Company
    from menzil.worker.shift import Shift


class Worker(Registering):
    """Delivers messages: to endpoints, and to the handlers you give it."""

    def __init__(
        self,
        dsn: str | choosing.Url | Several | None = None,
        *,
        dsn_file: str | Path | None = None,
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
        A list or a mapping of names to connection strings lets it serve several databases, and so does `dsn_file`.

        dsn_file     a file with one connection string on a line, perhaps after a name; read again after SIGHUP
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
        self._dsn = _read(dsn, dsn_file)
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
        # While it runs: the shift of one database, or the company of several.
        self._shift: Shift | None = None
        self._company: Company | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ends_at: float | None = None  # of threads that handlers have left, once a signal has stopped it

    def run(self, *, once: bool = False) -> Tally:
        """Work until SIGTERM, SIGINT or SIGHUP; with `once`, until nothing is due. Blocks; returns what was done.

        With `dsn_file`, SIGHUP reads the file again and does not stop the worker.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise UsageError("Worker.run() was called inside an event loop.", hint="write `await app.serve()` there")
        import_module("menzil.worker.company")  # with all that serve() needs, before the collector is told what stays
        from menzil.worker.looping import run

        self._ends_at = None
        # What the program has loaded stays: the collector need not look at it again and again. Messages come and go by
        # the thousand without cycles: it need not look as often, either.
        gc.freeze()
        gc.set_threshold(5000)
        return run(self._run(once), _loop_factory(), self._patience)

    async def serve(self, *, once: bool = False) -> Tally:
        """Work inside a program that has an event loop of its own, until stop() is called."""
        if self._shift is not None or self._company is not None:
            raise UsageError("This worker runs already.")
        from menzil.worker.company import Company
        from menzil.worker.shift import Shift

        self._loop = asyncio.get_running_loop()
        if isinstance(self._dsn, Databases):
            company = self._company = Company(self._dsn.now, self._handlers, self._options, self._hooks, once=once)
            try:
                return await company.run()
            finally:
                self._company = None
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
        shift, loop = self._company or self._shift, self._loop
        if shift is not None and loop is not None:
            loop.call_soon_threadsafe(lambda: shift.stop(force=force))

    def change(self, dsn: Several) -> None:
        """Serve these databases from now on, also while it works; from any thread.

        One that is no longer among them is drained: what is under way is finished, the rest is handed back.
        """
        self._change(several(dsn, "the argument dsn of Worker.change()"))

    def reload(self) -> None:
        """Read `dsn_file` again. A file that is refused changes nothing."""
        if not isinstance(self._dsn, Databases) or self._dsn.file is None:
            raise UsageError("This worker has no file of databases.", hint="give Worker(dsn_file=…)")
        self._change(read_file(self._dsn.file))

    def _change(self, databases: list[Named]) -> None:
        if not isinstance(self._dsn, Databases):
            hint = "give it a list, a mapping or a file of databases when it is made"
            raise UsageError("This worker serves one database.", hint=hint)
        self._dsn.now = databases
        company, loop = self._company, self._loop
        if company is not None and loop is not None:
            loop.call_soon_threadsafe(company.change, databases)

    @property
    def databases(self) -> dict[str, str]:
        """Of a worker on several databases, how each stands: served, starting, unreachable, refused or leaving."""
        return {} if self._company is None else self._company.states

    @property
    def started(self) -> bool:
        """Whether it works now, or waits for a copy of a database to be adopted."""
        if self._company is not None:
            return self._company.started
        return self._shift is not None and (self._shift.started or self._shift.standstill.told)

    def override(
        self, dsn: str | Several | None, *, dsn_file: str | Path | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Let a command line have the last word; None leaves a value as it is."""
        given = {name: value for name, value in (options or {}).items() if value is not None}
        self._options = replace(self._options, **given)
        self._options.check()
        if dsn is not None or dsn_file is not None:
            self._dsn = _read(dsn, dsn_file, "the option --dsn")

    @property
    def name(self) -> str | None:
        """The name it was given; None is made up when it runs."""
        return self._options.name

    @property
    def dsn(self) -> str | None:
        """Where it works; None is an embedded PostgreSQL."""
        if isinstance(self._dsn, Databases):
            raise UsageError("This worker serves several databases.", hint="Worker.databases has their names")
        return choosing.choose(self._dsn, directory=self._directory)

    async def _run(self, once: bool) -> Tally:
        loop = asyncio.get_running_loop()
        # Only the main thread hears signals.
        numbers: tuple[signal.Signals, ...] = ()
        if threading.current_thread() is threading.main_thread():
            numbers = (*{*stop_signals(), *((signal.SIGHUP,) if self.has_file else ())},)
        for number in numbers:
            loop.add_signal_handler(number, self._signalled, number)
        try:
            return await self.serve(once=once)
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _signalled(self, number: int) -> None:
        from menzil.worker.log import Hide, Log

        Log(Hide()).info("signal", name=signal.Signals(number).name)
        running = self._company or self._shift
        if number == signal.SIGHUP and self.has_file:
            self._reload()
        elif number != signal.SIGHUP or not (running is not None and running.stopping):
            self._ends_at = monotonic() + (self._options.grace if self._ends_at is None else 0)
            self.stop()

    def _patience(self) -> float | None:
        """How long to wait for threads that handlers have left: as long as needed, unless a signal has stopped it."""
        return None if self._ends_at is None else self._ends_at - monotonic()

    @property
    def has_file(self) -> bool:
        """Whether a file names its databases, which SIGHUP reads again."""
        return isinstance(self._dsn, Databases) and self._dsn.file is not None

    def _reload(self) -> None:
        try:
            self.reload()
        except UsageError as error:
            from menzil.worker.log import Hide, Log

            Log(Hide()).error("reload_failed", error=error.message, hint=error.hint, then="the set stays as it was")


@dataclass(slots=True)
class Databases:
    """Several databases: those that are served, and the file that names them, if one does."""

    now: list[Named]
    file: Path | None = None


def _read(
    dsn: str | choosing.Url | Several | None,
    dsn_file: str | Path | None,
    argument: str = "the argument dsn of Worker()",
) -> Dsn | Databases | None:
    """What is no connection string is refused when the worker is made, not when it runs."""
    if dsn_file is not None:
        if dsn is not None:
            raise UsageError("Databases are given twice, as dsn and as dsn_file.", hint="leave one of them out")
        file = Path(dsn_file).absolute()  # a daemon may change its directory
        return Databases(read_file(file), file)
    if dsn is None or isinstance(dsn, str):
        return None if dsn is None else choosing.given(dsn, argument)
    if isinstance(dsn, Mapping | Sequence):
        return Databases(several(dsn, argument))
    return choosing.given(dsn, argument)


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
