"""A call that is interrupted, even twice, spoils no later call on the same connection of a worker."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psycopg
import pytest

from menzil.ops import looking
from menzil.ops.op import Op
from menzil.worker.address import Address
from menzil.worker.link import Link


class Lines:
    """Keeps what is logged."""

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **facts: Any) -> None:
        self.said.append((event, facts))

    info = warning


SLOW: Op[Any] = Op("select pg_sleep(600)", (), lambda rows: rows)


async def sleeping(dsn: str) -> None:
    """Until a statement of the link is under way."""
    ends = time.monotonic() + 60
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        count = "select count(*) from pg_stat_activity where query = %s and state = 'active'"
        while await (await conn.execute(count, (SLOW.text,))).fetchone() != (1,):
            assert time.monotonic() < ends
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("times", [1, 2])
def test_interrupted_call_leaves_a_connection_that_works(db: str, times: int) -> None:
    async def work() -> list[tuple[str, dict[str, Any]]]:
        lines = Lines()
        link = Link("upkeep", Address(db), lines)  # type: ignore[arg-type]
        task = asyncio.create_task(link.run(SLOW))
        await sleeping(db)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await link.run(looking.now()) is not None
        await link.close()
        return lines.said

    assert asyncio.run(work()) == []
