"""One run of a worker, from hello to good-bye: what its parts share, and the order in which they start and stop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.model.errors import MenzilError, UsageError
from menzil.model.message import Message
from menzil.model.secrets import secret_keys
from menzil.ops import working
from menzil.ops.databases import name_of
from menzil.ops.preparing import Preparing
from menzil.telemetry.samples import client
from menzil.telemetry.serving import Served
from menzil.telemetry.tracing import read_tracing, spans
from menzil.telemetry.worker_samples import Counted, WorkerCounts, worker_page
from menzil.worker.address import Address
from menzil.worker.budget import Budget
from menzil.worker.handler import Handler
from menzil.worker.hooks import Hooks
from menzil.worker.jobs import Jobs
from menzil.worker.keeper import Keeper
from menzil.worker.leasing import Leasing
from menzil.worker.link import Link
from menzil.worker.log import Hide, Log
from menzil.worker.options import Options, new_name
from menzil.worker.post import Post
from menzil.worker.registry import Registry
from menzil.worker.settler import Settler
from menzil.worker.source import Source
from menzil.worker.sources import Plan, plan
from menzil.worker.standstill import Standstill
from menzil.worker.suspects import Suspects
from menzil.worker.tally import Tally, Tries
from menzil.worker.threads import Threads
from menzil.worker.transaction import Lender
from menzil.worker.wake import Listener, Wake
from menzil.worker.watchdog import Watchdog

if TYPE_CHECKING:
    from menzil.telemetry.spans import Spans
    from menzil.worker.branch import Branch

#: Seconds for the last outcomes to be settled, and for deliveries to notice that they were stopped.
LAST_WORDS, NOTICE = 10.0, 1.0


class Shift:
    """What a worker is while it runs."""

    def __init__(
        self,
        dsn: str,
        handlers: Sequence[Handler],
        options: Options,
        hooks: Hooks,
        *,
        once: bool = False,
        branch: Branch | None = None,
    ) -> None:
        """`branch` where the worker serves several databases, and this shift is about one of them."""
        self.options = options
        self.branch = branch
        self.database = branch.name if branch else name_of(dsn)
        self.hooks = hooks
        self.address = Address(dsn, Preparing(options.prepare, self._tell_of_preparing))
        self.hide = Hide([*self.address.secrets(), *(branch.secrets() if branch else ())])
        self.log = Log(self.hide, branch.name if branch else None)
        self.name = options.name or new_name()
        self.loads = options.loads
        self.once = once
        self.handlers = handlers
        self.tally = branch.tally if branch else Tally()
        self.counts = branch.counts if branch else WorkerCounts(timed=options.metrics is not None)
        self.tries = Tries()
        self.happened = 0  # counts events that may have changed what there is to do
        self.stopping = False
        self.broken: BaseException | None = None
        self.sources: list[Source] = []
        self.spans: Spans | None = None
        self.lease = Link("lease", self.address, self.log)
        self.settle = Link("settle", self.address, self.log)
        self.beat = Link("heartbeat", self.address, self.log)
        self.upkeep = Link("upkeep", self.address, self.log)
        self.wake: Wake = Wake(options.poll)
        self.settler = Settler(self)
        self.keeper = Keeper(self)
        self.suspects = Suspects(self)
        self.lender = Lender(self.address)
        self.threads = Threads()
        self._stop = asyncio.Event()
        self.standstill = Standstill(self, self._stop)
        self._force = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._jobs: asyncio.Task[None] | None = None
        self._leasing: list[Leasing] = []

    async def run(self) -> Tally:
        """Work until told to stop, or once until there is nothing left to do."""
        try:
            return await self._run()
        finally:
            for source in self.sources:
                if source.pool is not None:
                    source.pool.leave(source)  # also where it failed before it began
            for link in (self.lease, self.settle, self.beat, self.upkeep):
                await link.close()

    async def _run(self) -> Tally:
        await self.address.handshake()
        if self.branch is not None:
            await self.branch.demand_own(self.upkeep)
        await self.standstill.over()
        if self._stop.is_set():
            return self.tally
        settings = await self.upkeep.run(working.settings())
        self.hide.learn(settings.get("redact"))
        keys = secret_keys(self.options.secret_key)
        self.post = Post(self.lease, self.name, settings, self.log, keys, lambda: self.upkeep.run(working.settings()))
        most = self.branch.max_bytes() if self.branch else self.options.max_bytes
        self.budget = Budget(most, int(settings["max_payload_size"]))
        await self.hooks.start()
        try:
            return await self._work(settings)
        finally:
            await self.hooks.stop(self.log)

    async def _work(self, settings: Mapping[str, str]) -> Tally:
        self.spans = spans(read_tracing(self.options.tracing))  # now, because on_start may have installed the SDK
        what = plan(self, float(settings["stale_recovery_timeout"]))
        self.sources = what.sources
        await self._check_names(what)
        if not self.sources:
            raise UsageError(
                "There is nothing for this worker to do.", hint="give it handlers, or let it serve endpoints"
            )
        # Before anything is leased: a worker whose role may not have so many connections could not settle.
        await asyncio.gather(*(link.connection() for link in (self.lease, self.settle, self.beat)))
        if any(source.is_post for source in self.sources):
            with suppress(MenzilError, psycopg.Error):  # then the first message of each brings it along
                used = await self.upkeep.run(working.protocols())
                self.post.prepare(used)
        began = monotonic()
        registry = Registry(self, what.names)
        await registry.hello()
        # Of these there is one in a process, however many databases it serves.
        page = None if self.branch else self._serve_metrics()
        watchdog = Watchdog(self.log)
        if self.branch is None:
            watchdog.start()
        try:
            leases = self._start(registry)
            try:
                await self._stop.wait()
            except asyncio.CancelledError:
                self.stop(force=True)
                raise
            finally:
                await self._to_the_end(self._wind_down(leases))
        finally:
            watchdog.stop()
            await self._close(registry)
            if page is not None:
                page.close()
        if self.broken is not None:
            raise self.broken
        self.log.info("stopped", worker=self.name, seconds=monotonic() - began, **self.tally.facts())
        return self.tally

    def stop(self, *, force: bool = False) -> None:
        """Stop leasing and finish; with force, or when asked a second time, hand everything back at once."""
        if force or self._stop.is_set():
            self._force.set()
        self._stop.set()

    def _serve_metrics(self) -> Served | None:
        if self.options.metrics is None:
            return None
        client("prometheus_client")  # refused now, not at the first scrape
        page = Served(self.options.metrics, self._page)
        self.log.info("metrics", url=page.url)
        return page

    def _page(self, accept: str | None) -> tuple[str, bytes]:
        return worker_page(Counted(self.counts, self.tally.settles(), self.reconnects), accept)

    @property
    def reconnects(self) -> int:
        """Connections that broke and came back."""
        return sum(link.reconnects for link in (self.lease, self.settle, self.beat, self.upkeep))

    def look_dry(self) -> None:
        """Stop when there is nothing left to do: nothing to lease, nothing under way, nothing to settle."""
        kept_house = self._jobs is None or self._jobs.done()
        if kept_house and monotonic() >= self.suspects.back_at and not self.in_flight:
            wet = [leasing for leasing in self._leasing if not leasing.dry]
            for leasing in wet:
                leasing.source.bell.ring()  # it found nothing while others were busy, and looks again
            if not wet:
                self.ran_dry()

    def ran_dry(self) -> None:
        """Nothing is left to do."""
        self.stop()

    def leased(self, messages: list[Message], seconds: float) -> None:
        """Count what one call leased."""
        self.counts.leased(messages, seconds)

    @property
    def started(self) -> bool:
        """Whether it leases."""
        return bool(self._leasing)

    @property
    def in_flight(self) -> int:
        """Messages in this worker's hands."""
        return sum(len(source.held) for source in self.sources) + self.settler.count

    def _start(self, registry: Registry) -> list[asyncio.Task[None]]:
        work: list[Coroutine[Any, Any, None]] = [self.settler.work(), self.keeper.work(), registry.work()]
        if self.options.listen and not self.once:
            work.append(Listener(self.wake, self.address, self.upkeep, self.log).work())
        if self.options.janitors:
            jobs = Jobs(self)
            work.append(jobs.once() if self.once else jobs.work())
        self._tasks = [self._guard(one) for one in work]
        if self.options.janitors:
            self._jobs = self._tasks[-1]
        self._leasing = [Leasing(self, source) for source in self.sources]
        return [self._guard(leasing.work()) for leasing in self._leasing]

    def _guard(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a part of the worker: if it breaks, that is a bug, and working on without it would hide it."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self.log.error("broken", part=task.get_name(), error=f"{type(error).__name__}: {error}")
                self.broken = error
                self.stop()

        task = asyncio.create_task(work, name=getattr(work, "__qualname__", "part"))
        task.add_done_callback(ended)
        return task

    async def _check_names(self, what: Plan) -> None:
        """A name that is given must mean something: a handler, or an endpoint there is."""
        if what.named_endpoints and not self.options.endpoints:
            raise UsageError(f"There is no handler for {', '.join(map(repr, what.named_endpoints))}.")
        if what.named_endpoints:
            await self.post.learn(set(what.named_endpoints))
            unknown = [name for name in what.named_endpoints if not self.post.knows(name)]
            if unknown:
                sentence = f"There is neither a handler nor an endpoint {', '.join(map(repr, unknown))}."
                raise UsageError(sentence, hint="create the endpoint, or name the program with its handler")

    def _tell_of_preparing(self, sentence: str) -> None:
        self.log.warning("prepared_statements_off", why=sentence, hint="--no-prepare says so from the beginning")

    # The end

    async def _to_the_end(self, work: Coroutine[Any, Any, None]) -> None:
        """A second signal meanwhile hurries it, and messages are handed back all the same."""
        task = asyncio.ensure_future(work)
        while not task.done():
            try:
                await asyncio.shield(task)
            except asyncio.CancelledError:
                self.stop(force=True)

    async def _wind_down(self, leases: list[asyncio.Task[None]]) -> None:
        self.stopping = True
        self.wake.ring()
        for source in self.sources:
            source.room.set()
        # A lease that is being granted right now is waited for: otherwise its messages would wait until the lease ends.
        await asyncio.wait(leases, timeout=5)
        for task in leases:
            task.cancel()
        for source in self.sources:
            source.hand_back_waiting()
        self._say_what_it_waits_for()
        if not self._force.is_set():
            await self._wait_for_deliveries()
        for source in self.sources:
            source.stop_all()
        ends = monotonic() + NOTICE
        while any(source.held for source in self.sources) and monotonic() < ends:
            await asyncio.sleep(0.01)
        for source in self.sources:
            for held in list(source.held):
                if held.task is not None:
                    hint = "its handler catches CancelledError and goes on: it is left behind"
                    self.log.warning("does_not_stop", channel=held.channel, id=held.id, hint=hint)
                source.abandon(held)
        if not await self.settler.settled(LAST_WORDS):
            self.log.error("not_settled", count=self.settler.count, why=self.settler.trouble)

    def _say_what_it_waits_for(self) -> None:
        waiting: dict[str, int] = {}
        for source in self.sources:
            for held in source.held:
                waiting[held.channel] = waiting.get(held.channel, 0) + 1
        facts = {"waiting_for": sum(waiting.values()), "channels": ",".join(f"{k}:{n}" for k, n in waiting.items())}
        if waiting:
            self.log.info("stopping", worker=self.name, grace=self.options.grace, **facts)
        elif not self.once:
            self.log.info("stopping", worker=self.name)

    async def _wait_for_deliveries(self) -> None:
        forced = asyncio.create_task(self._force.wait())
        ends = monotonic() + self.options.grace
        while any(source.held for source in self.sources) and monotonic() < ends and not forced.done():
            await asyncio.wait([forced], timeout=min(0.02, max(0.0, ends - monotonic())))
        forced.cancel()

    async def _close(self, registry: Registry) -> None:
        for task in self._tasks:
            task.cancel()
        for source in self.sources:
            await source.close()
        with suppress(MenzilError, psycopg.Error, TimeoutError):
            async with asyncio.timeout(2):
                await registry.goodbye()
        with suppress(Exception):
            await self.post.protocols.close()
        self.threads.close()
        await self.lender.close()
