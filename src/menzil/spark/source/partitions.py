"""How a read is divided among tasks: by ranges of ids, those of the archive month by month. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from menzil.spark.source.filters import quoted
from menzil.spark.source.places import SETTINGS

#: Of the heap, for one task, where the number of tasks is not given.
BYTES = 128 << 20
ROWS = 250_000
MOST = 512
#: No end of messages spans more ids.
SPAN = 4096
#: What begins with the ends, and gives its first rows at once.
ENDED = "menzil._ended"
#: Messages that ended one by one are joined with their ends, all at once.
JOINED = {"enable_nestloop": "off", "enable_mergejoin": "off", "work_mem": "'64MB'"}


@dataclass(frozen=True)
class Month:
    """A month of the archive: its bounds, the table it lies in, and where its messages lie in that."""

    oid: int
    name: str
    starts: datetime
    ends: datetime
    blocks: int
    first: int
    last: int
    together: bool  # most messages ended together with others

    @property
    def condition(self) -> str:
        """Leads the planner to the table."""
        return _created(self.starts, self.ends)

    @property
    def span(self) -> str:
        """Of the ends, those that can be of this month."""
        return f"lo_id > {self.first - SPAN} and lo_id <= {self.last}"


@dataclass(frozen=True)
class Piece:
    """The rows of one task: what to select from, and which condition picks them. `oid` must still exist afterwards.

    `ends` picks their ends, where most of them ended together with others.
    """

    source: str
    condition: str | None
    oid: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    ends: str | None = None


def of_months(
    months: Sequence[Month], wanted: int | None, few: bool = False, block_size: int = 8192
) -> Iterator[Piece]:
    """Ranges of ids, none across two months, about as many in each piece.

    With `few` matches the end of each is looked for by itself; else the ends are read from one side to the other.
    """
    total = sum(month.blocks for month in months)
    count = wanted or min(MOST, max(1, -(-total * block_size // BYTES)))
    step = max(1, -(-total // count))
    for month in months:
        pieces = max(1, round(month.blocks / step))
        length = max(1, -(-(month.last - month.first + 1) // pieces))
        for first in range(month.first, month.last + 1, length):
            end = min(first + length, month.last + 1)
            ids = f"{month.condition} and id >= {first} and id < {end}"
            ends = f"lo_id > {first - SPAN} and lo_id < {end}"
            if few:
                yield Piece("menzil.archive", ids, month.oid)
            elif month.together:
                yield Piece(ENDED, f"{ids} and {ends}", month.oid, ends=ends)
            else:
                yield Piece("menzil._ended_singly", f"{ids} and {ends}", month.oid, JOINED)


def of_ends(month: Month, first: int, last: str | None, cuts: Sequence[tuple[str, int]]) -> Iterator[Piece]:
    """Ends of a month from a transaction id on, up to before another, cut at places (xid, id): the index gives them."""
    for low, high in zip([None, *cuts], [*cuts, None], strict=True):
        parts = [month.condition, _ended(month, first, last)]
        if low:
            parts.append(f"ended_xid >= '{low[0]}'::xid8 and (ended_xid, id) > ('{low[0]}'::xid8, {low[1]}::bigint)")
        if high:
            parts.append(
                f"ended_xid <= '{high[0]}'::xid8 and (ended_xid, id) <= ('{high[0]}'::xid8, {high[1]}::bigint)"
            )
        yield Piece(ENDED, " and ".join(parts), month.oid, SETTINGS)


def cuts(month: Month, first: int, last: str | None, rows: int) -> str:
    """Every so many ends that can be of this month one place, in the order of the index."""
    return (
        "select xid::text, id from (select ended_xid as xid, id, row_number() over (order by ended_xid, id) as n "
        f"from menzil._ends where {_ended(month, first, last)}) r where n % {rows} = 0 order by n"
    )


def _ended(month: Month, first: int, last: str | None) -> str:
    before = "" if last is None else f" and ended_xid < {quoted(last)}::xid8"
    return f"ended_xid >= '{first}'::xid8{before} and {month.span}"


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


def window(months: Sequence[Month], least: int, greatest: int) -> str | None:
    """When messages with ids in between were created, as the months say: spares the planner the others."""
    asked = [month for month in months if month.first <= greatest and month.last >= least]
    if not asked:
        return None
    return _created(min(month.starts for month in asked), max(month.ends for month in asked))


def _created(first: datetime, end: datetime) -> str:
    low, high = (quoted(at.isoformat()) + "::timestamptz" for at in (first, end))
    return f"created_at >= {low} and created_at < {high}"


def count_for(rows: float) -> int:
    """How many tasks for this many rows, as the planner guesses them."""
    return min(MOST, max(1, -(-int(rows) // ROWS)))


def select(projection: str, piece: Piece, conditions: Sequence[str]) -> str:
    """The query of one task."""
    parts = [f"({part})" for part in (piece.condition, *conditions) if part]
    where = f" where {' and '.join(parts)}" if parts else ""
    return f"select {projection} from {piece.source}{where}"
