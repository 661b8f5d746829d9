"""procrastinate: sends through its sync connector, works in one event loop."""

from __future__ import annotations

import asyncio
import sys

import procrastinate
import uvloop

from bench.peers.stage import BODY, Handled, Player, main

MODES = {"default": {}, "tuned": {"concurrency": 30}}
SYNC = sys.argv[1] in ("send", "batch")

_pool = (
    procrastinate.SyncPsycopgConnector(conninfo="", min_size=1, max_size=1)
    if SYNC
    else procrastinate.PsycopgConnector(conninfo="", min_size=10, max_size=10)
)
app = procrastinate.App(connector=_pool)
_handled: Handled = print


@app.task(name="nothing")
async def nothing(**_: object) -> None:
    """Count it."""
    _handled(1)


class Procrastinate(Player):
    """Its jobs are taken one by one."""

    async def install(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    async def open(self) -> None:
        if SYNC:
            app.open()
        else:
            await app.open_async()

    async def send(self) -> None:
        if SYNC:
            nothing.defer(**BODY)
        else:
            await nothing.defer_async(**BODY)

    async def batch(self, size: int) -> None:
        if SYNC:
            nothing.batch_defer(*[BODY] * size)
        else:
            await nothing.batch_defer_async(*[BODY] * size)

    async def work(self, mode: str, handled: Handled) -> None:
        global _handled
        _handled = handled
        await app.open_async()
        working = app.run_worker_async(**MODES[mode], install_signal_handlers=False)
        self.running = asyncio.create_task(working)
        await asyncio.sleep(0.5)

    async def drain(self, mode: str, _count: int, handled: Handled) -> None:
        global _handled
        _handled = handled
        async with app.open_async():
            await app.run_worker_async(**MODES[mode], wait=False, install_signal_handlers=False)


if __name__ == "__main__":
    main(Procrastinate(), uvloop.run)
