"""How a read is divided among tasks: the archive by blocks of its months, the others by ranges of their key. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from menzil.spark.source.filters import quoted

#: Of the heap, for one task, when nobody says how many tasks there should be.
BYTES = 128 << 20
ROWS = 250_000
MOST = 512
_BOUND = re.compile(r"FOR VALUES FROM \('([^']+)'\) TO \('([^']+)'\)")


@dataclass(frozen=True)
class Leaf:
    """A month of the archive, or its default partition (no bound), with its size in blocks."""

    oid: int
    name: str
    bound: str | None
    blocks: int


@dataclass(frozen=True)
class Piece:
    """The rows of one task: what to select from, and which condition picks them. `oid` must still exist afterwards."""

    source: str
    condition: str | None
    oid: int | None = None


def of_leaves(leaves: Sequence[Leaf], wanted: int | None, block_size: int = 8192) -> Iterator[Piece]:
    """Ranges of blocks, none across two months, about equally long; the last of a month is open."""
    total = sum(leaf.blocks for leaf in leaves)
    count = wanted or min(MOST, max(1, -(-total * block_size // BYTES)))
    step = max(1, -(-total // count))
    for leaf in leaves:
        pieces = max(1, round(leaf.blocks / step))
        length = max(1, -(-leaf.blocks // pieces))
        source, month = _where(leaf)
        for first in range(0, max(leaf.blocks, 1), length):
            parts = [month] if month else []
            if first > 0:
                parts.append(f"ctid >= '({first},0)'::tid")
            if first + length < leaf.blocks:
                parts.append(f"ctid < '({first + length},0)'::tid")
            yield Piece(source, " and ".join(parts) or None, leaf.oid)


def _where(leaf: Leaf) -> tuple[str, str | None]:
    """A month is read through the archive, on which readers have rights; its bound leads the planner to it."""
    bound = _BOUND.fullmatch(leaf.bound or "")
    if bound is None:
        return f'only menzil."{leaf.name}"', None
    low, high = (quoted(end) + "::timestamptz" for end in bound.groups())
    return "menzil.archive", f"created_at >= {low} and created_at < {high}"


def of_ends(leaf: Leaf, first: int, last: str | None, cuts: Sequence[tuple[str, int]]) -> Iterator[Piece]:
    """Ends of a month from a transaction id on, up to before another, cut at places (xid, id): the index gives them."""
    source, month = _where(leaf)
    parts = [month] if month else []
    parts.append(f"ended_xid >= '{first}'::xid8")
    if last is not None:
        parts.append(f"ended_xid < {quoted(last)}::xid8")
    places = [f"('{xid}'::xid8, {id}::bigint)" for xid, id in cuts]
    for low, high in zip([None, *places], [*places, None], strict=True):
        more = [f"(ended_xid, id) > {low}"] if low else []
        more += [f"(ended_xid, id) <= {high}"] if high else []
        yield Piece(source, " and ".join([*parts, *more]), leaf.oid)


def cuts(whole: Piece, rows: int) -> str:
    """Every so many rows of a piece one place, in the order of the index."""
    return (
        "select xid::text, id from (select ended_xid as xid, id, row_number() over (order by ended_xid, id) as n "
        f"from {whole.source} where {whole.condition}) r where n % {rows} = 0 order by n"
    )


def of_key(name: str, key: str, low: int, high: int, count: int) -> Iterator[Piece]:
    """Ranges of an integer key; first and last are open, so that nothing falls beside them."""
    step = max(1, -(-(high - low + 1) // count))
    edges = list(range(low + step, high + 1, step))
    for first, last in zip([None, *edges], [*edges, None], strict=True):
        parts = []
        if first is not None:
            parts.append(f'"{key}" >= {first}')
        if last is not None:
            parts.append(f'"{key}" < {last}')
        yield Piece(f"menzil.{name}", " and ".join(parts) or None)


def count_for(rows: float) -> int:
    """How many tasks for this many rows, as the planner guesses them."""
    return min(MOST, max(1, -(-int(rows) // ROWS)))


def select(projection: str, piece: Piece, conditions: Sequence[str]) -> str:
    """The query of one task."""
    parts = [f"({part})" for part in (piece.condition, *conditions) if part]
    where = f" where {' and '.join(parts)}" if parts else ""
    return f"select {projection} from {piece.source}{where}"
