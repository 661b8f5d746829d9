"""A worker on several databases: one shift for each, in one event loop, and what they share.

They share handlers, hooks, the name of the worker, permits for deliveries (permits.py), the watchdog of the loop and
the page with metrics. The set may change while it works (`change`): a database that leaves is drained as after SIGTERM.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import fields, replace

from menzil.model.errors import MenzilError
from menzil.ops.databases import Named
from menzil.telemetry.samples import client
from menzil.telemetry.serving import Served
from menzil.telemetry.worker_samples import several_page
from menzil.worker.address import Address
from menzil.worker.branch import Branch, SameDatabaseError
from menzil.worker.handler import Handler
from menzil.worker.hooks import Hooks
from menzil.worker.log import Hide, Log
from menzil.worker.options import Options, new_name
from menzil.worker.permits import Pool
from menzil.worker.registry import new_instance
from menzil.worker.tally import Tally
from menzil.worker.watchdog import Watchdog


class Company:
    """The databases of one worker while it runs."""

    def __init__(
        self,
        databases: Sequence[Named],
        handlers: Sequence[Handler],
        options: Options,
        hooks: Hooks,
        *,
        once: bool = False,
    ) -> None:
        self.handlers = handlers
        self.options = replace(options, name=options.name or new_name())
        self.hooks = replace(hooks, on_start=[], on_stop=[])  # those are about the process
        self.once = once
        self.instance = new_instance()
        self.stopping = False
        self._all_hooks = hooks
        self._databases = list(databases)
        self._branches: dict[str, Branch] = {}
        self._gone = Tally()  # of databases that left
        self._pools: dict[Hashable, Pool] = {}
        self._news = asyncio.Event()
        self._broken: BaseException | None = None
        self._hide = Hide(self.secrets())
        self._log = Log(self._hide)

    async def run(self) -> Tally:
        """Work until told to stop, or once until nothing is left to do anywhere."""
        page = self._serve_metrics()
        watchdog = Watchdog(self._log)
        try:
            await self._all_hooks.start()
            watchdog.start()
            try:
                for named in self._databases:
                    self._enter(named)
                await self._to_the_end()
            finally:
                watchdog.stop()
                await self._all_hooks.stop(self._log)
        finally:
            if page is not None:
                page.close()
        if self._broken is not None:
            raise self._broken
        if self.once:
            self._demand_all()
        return self.tally

    def stop(self, *, force: bool = False) -> None:
        """Stop leasing everywhere and finish; with force, or when asked a second time, hand everything back at once."""
        force, self.stopping = force or self.stopping, True
        for branch in self._branches.values():
            branch.stop(force=force)
        self._news.set()

    def change(self, databases: Sequence[Named]) -> None:
        """Serve these from now on: others leave, and one whose address changed is served at the new one."""
        if self.stopping:
            return
        self._sort_out()
        before, self._databases = {one.name: one for one in self._databases}, list(databases)
        self._hide.know(self.secrets())
        wanted = {one.name: one for one in databases}
        for branch in self._branches.values():
            branch.know(self.secrets())
            if branch.name not in wanted:
                branch.stop()
        for name, one in wanted.items():
            known = self._branches.get(name)
            if known is None:
                self._enter(one)
            elif known.leaving or known.dsn != one.dsn:
                known.move(one.dsn)
        for branch in self._branches.values():
            if branch.shift is not None and hasattr(branch.shift, "budget"):
                branch.shift.budget.most = self.part_of_bytes()
        moved = [name for name in wanted.keys() & before.keys() if wanted[name].dsn != before[name].dsn]
        changes = {"added": wanted.keys() - before.keys(), "removed": before.keys() - wanted.keys(), "moved": moved}
        told = {what: ",".join(sorted(names)) or None for what, names in changes.items()}
        self._log.info("databases", serving=len(wanted), **told)
        self._news.set()

    # What branches ask for

    def secrets(self) -> list[str]:
        """What no text may hold."""
        return [secret for one in self._databases for secret in Address(one.dsn).secrets()]

    def pool(self, kind: Hashable, size: int) -> Pool:
        """The permits for sources of this kind."""
        return self._pools.setdefault(kind, Pool(size))

    def part_of_bytes(self) -> int:
        """Bytes of messages that one database may have here."""
        return max(1, self.options.max_bytes // max(1, len(self._databases)))

    def serving(self, identity: str, asking: Branch) -> Branch | None:
        """The branch that serves this database under another name."""
        others = (one for one in self._branches.values() if one is not asking)
        return next((one for one in others if one.identity == identity), None)

    def look_refused(self) -> None:
        """End when no database was ever served and each one refuses: waiting would hide what is to be repaired."""
        branches = list(self._branches.values())
        refused = [one.error for one in branches if one.state == "refused"]
        if self.once or len(refused) < len(branches) or any(one.was_served or one.is_up for one in branches):
            return
        self._broken = self._broken or refused[0]
        self.stop()

    # What the outside sees

    @property
    def tally(self) -> Tally:
        """What was done in all databases together."""
        found = [self._gone, *(branch.tally for branch in self._branches.values())]
        return Tally(*(sum(getattr(one, field.name) for one in found) for field in fields(Tally)))

    @property
    def states(self) -> dict[str, str]:
        """How each database stands, by name."""
        return {name: branch.state for name, branch in self._branches.items()}

    @property
    def started(self) -> bool:
        """Whether at least one database is served, or waits for a copy to be adopted."""
        shifts = [branch.shift for branch in self._branches.values()]
        return any(shift is not None and (shift.started or shift.standstill.told) for shift in shifts)

    def _serve_metrics(self) -> Served | None:
        if self.options.metrics is None:
            return None
        client("prometheus_client")  # refused now, not at the first scrape
        page = Served(self.options.metrics, self._page)
        self._log.info("metrics", url=page.url)
        return page

    def _page(self, accept: str | None) -> tuple[str, bytes]:
        return several_page({name: branch.counted() for name, branch in list(self._branches.items())}, accept)

    # Its life

    def _enter(self, named: Named) -> None:
        self._branches[named.name] = Branch(self, named)

    async def _to_the_end(self) -> None:
        """Wait for all branches; who is impatient meanwhile hurries them, and does not keep them from handing back."""
        cancelled = False
        while tasks := {branch.task for branch in self._branches.values() if not branch.task.done()}:
            self._news.clear()
            news = asyncio.ensure_future(self._news.wait())
            try:
                await asyncio.wait([*tasks, news], return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                cancelled = True
                self.stop(force=True)
            finally:
                news.cancel()
            self._sort_out()
        self._sort_out()
        if cancelled:
            raise asyncio.CancelledError

    def _sort_out(self) -> None:
        """Take branches off that have ended. One that broke ends the worker: going on without it would hide a bug."""
        for name, branch in list(self._branches.items()):
            if not branch.task.done():
                continue
            error = None if branch.task.cancelled() else branch.task.exception()
            if error is not None and self._broken is None:
                self._log.error("broken", part=name, error=f"{type(error).__name__}: {error}")
                self._broken = error
                self.stop()
            if branch.leaving and not self.stopping:
                del self._branches[name]
                for field in fields(Tally):
                    total = getattr(self._gone, field.name) + getattr(branch.tally, field.name)
                    setattr(self._gone, field.name, total)

    def _demand_all(self) -> None:
        """A worker that ran once says so if a database was left out."""
        missed = [(one.name, one.error) for one in self._branches.values() if one.error is not None]
        missed = [(name, error) for name, error in missed if not isinstance(error, SameDatabaseError)]
        if not missed:
            return
        told = "; ".join(
            f"{name}: {error.message if isinstance(error, MenzilError) else error}" for name, error in missed
        )
        hint = next((error.hint for _, error in missed if isinstance(error, MenzilError) and error.hint), None)
        raise MenzilError(f"{len(missed)} of {len(self._databases)} databases were not served: {told}", hint=hint)
