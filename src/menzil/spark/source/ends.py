"""Messages that ended together share their end: it is sent once, and each message brings its place.

Status, times, worker and transaction of an end are a third of the fields of a message, and the same in all of them. A
task asks for the ends of its piece first, which are few, then for messages without these columns, and puts both
together. Messages that needed more than one try, or did not complete, come with all their columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from menzil.model.errors import RefusedError
from menzil.spark.source import partitions
from menzil.spark.source.relations import Column
from menzil.spark.source.thin import Plan

if TYPE_CHECKING:
    import pyarrow
    from pyarrow import RecordBatch

    from menzil.spark.source.arrow import Source
    from menzil.spark.source.partitions import Piece

#: Columns of the archive that the messages of an end share.
SHARED = frozenset(
    ("status", "num_attempts", "retry_count", "first_leased_at", "leased_at", "ended_at", "ended_xid", "worker")
)
#: Messages that share an end, and the others.
ALIKE, OTHERS = ("menzil._ended_plainly", "menzil._ended_with_responses"), "menzil._ended_otherwise"
#: What a message brings of its end: the least id in it. No column is called so.
_PLACE = "_place"


def shared(plan: Plan, piece: Piece) -> bool:
    """Whether it is worth it: at least two of these columns are asked for, of a piece that begins with its ends."""
    return piece.ends is not None and sum(column.name in SHARED for column, _ in plan.columns) > 1


def batches(
    source: Source, plan: Plan, packed: Sequence[Column], piece: Piece, conditions: Sequence[str]
) -> Iterator[RecordBatch]:
    """The rows of a piece, as its query would give them."""
    asked = [(column, name) for column, name in plan.columns if column.name in SHARED]
    values = ", ".join(f'{column.expression} as "{name}"' for column, name in asked)
    table = source.table(f'select lo_id as "{_PLACE}", {values} from menzil._ends_alike where {piece.ends}')
    rest = piece
    if len(table):
        rest = replace(piece, source=OTHERS)
        table = table.sort_by(_PLACE)
        ends = {name: table[name].combine_chunks() for name in table.column_names}
        lean = Plan([*(each for each in plan.columns if each not in asked), (Column("lo_id", "bigint"), _PLACE)])
        rare = [column for column in packed if column.name not in SHARED]
        share = plan.share(packed) * len(lean.columns) / len(plan.columns)
        query = " union all ".join(
            partitions.select(lean.projection(rare), replace(piece, source=each), conditions) for each in ALIKE
        )
        for batch in lean.unpack(source.batches(query, share), rare):
            yield _whole(plan, batch, ends)
    query = partitions.select(plan.projection(packed), rest, conditions)
    yield from plan.unpack(source.batches(query, plan.share(packed)), packed)


def _whole(plan: Plan, batch: RecordBatch, ends: dict[str, pyarrow.Array]) -> RecordBatch:
    """The messages with the columns of their ends."""
    import pyarrow

    known, wanted = ends[_PLACE].to_numpy(), batch.column(_PLACE).to_numpy()
    places = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    if not np.array_equal(known[places], wanted):
        raise RefusedError("The history was changed while it was read.", hint="read again")
    rows = pyarrow.array(places)
    names = [name for _, name in plan.columns]
    arrays = [ends[name].take(rows) if name in ends else batch.column(name) for name in names]
    return pyarrow.RecordBatch.from_arrays(arrays, names)
