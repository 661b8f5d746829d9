"""Looks at a source without taking from it: what would come next, and how far behind the bridge is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from menzil.bridge.mapping import Mapper
from menzil.bridge.runner import Runner
from menzil.bridge.source import Batch, Source
from menzil.ops.bridges import Spec


@asynccontextmanager
async def looked_at(dsn: str, name: str) -> AsyncIterator[tuple[Spec, Source]]:
    """Open the source of a bridge where the bridge stands. A bridge that never ran stores no start.

    Raises SourceError and MenzilError.
    """
    runner = Runner(name, dsn)
    try:
        spec = await runner.spec()

        async def positions(partition: str, start: str | None = None) -> str | None:
            return spec.positions.get(partition) or start

        source = await runner.source(spec)
        try:
            await source.open(positions)
            yield spec, source
        finally:
            await source.close()
    finally:
        await runner.leave()


async def coming(dsn: str, name: str, limit: int, seconds: float = 2.0) -> list[dict[str, Any]]:
    """Return the next records of a source as they would be taken."""
    found: list[dict[str, Any]] = []
    async with looked_at(dsn, name) as (spec, source):
        mapper = Mapper(spec, has_positions=source.has_positions)
        # The first read may only have begun when its time is over.
        for _ in range(limit + 2):
            batch = await source.read(limit - len(found), seconds)
            found += _shown(mapper, batch) if batch is not None else []
            if batch is None or len(found) >= limit:
                break
    return found


def _shown(mapper: Mapper, batch: Batch) -> list[dict[str, Any]]:
    rows = [(record, mapper.row(record, batch.partition)) for record in batch.records]
    return [
        {
            "partition": batch.partition,
            "position": record.position,
            "ordering_key": row.ordering_key,
            "bytes": len(record.body or b""),
            "body": row.text if row.text is not None else None,
            "headers": row.headers,
            "metadata": row.metadata,
            "fault": row.fault,
        }
        for record, row in rows
    ]


async def lag(dsn: str, name: str) -> dict[str, int]:
    """Count what waits in a source, by partition."""
    async with looked_at(dsn, name) as (_, source):
        return await source.lags()
