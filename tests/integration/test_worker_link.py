"""Sources of a worker share one connection: what one call leased is begun before the next call is made."""

from __future__ import annotations

import asyncio

from menzil.ops.op import Op
from menzil.worker.address import Address, Conn
from menzil.worker.link import Link
from menzil.worker.log import Hide, Log

ONE: Op[int] = Op("select 1", (), lambda rows: int(rows[0][0]))


class Watched(Link):
    """Notes when a call is about to use the connection."""

    def __init__(self, dsn: str, seen: list[str]) -> None:
        super().__init__("lease", Address(dsn), Log(Hide()))
        self._seen = seen

    async def connection(self) -> Conn:
        self._seen.append("call")
        return await super().connection()


def test_delivery_that_a_call_made_possible_begins_before_the_next_call_on_the_same_connection(db: str) -> None:
    async def work() -> list[str]:
        seen: list[str] = []
        link = Watched(db, seen)
        leased = asyncio.get_running_loop().create_future()

        async def slot() -> None:
            await leased
            seen.append("delivery")

        async def handlers() -> None:
            await link.run(ONE)
            leased.set_result(None)

        async def endpoints() -> None:
            await link.run(ONE)

        await asyncio.gather(slot(), handlers(), endpoints())
        await link.close()
        return seen

    assert asyncio.run(work()) == ["call", "delivery", "call"]
