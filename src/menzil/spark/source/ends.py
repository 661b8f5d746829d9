"""Messages that ended together share their end: it is sent once, and each message brings its place.

Status, times, worker and transaction of an end are a third of the fields of a message, and the same in all of them. A
task asks for the ends of its piece first, which are few, then for messages without these columns, and puts both
together. Messages that needed more than one try, or did not complete, come with all their columns. Names of channels
are sent once, too, and each message brings the id of its channel.
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
    from pyarrow import RecordBatch, Table

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
#: What a message brings of its channel: the id. No column is called so.
_CHANNEL = "_channel"
#: With more channels than this each message brings the name: every task would ask for all of them.
NAMES = 10_000


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
        shares = [_Shared(_PLACE, Column("lo_id", "bigint"), table, [name for _, name in asked])]
        shares += _names(source, plan)
        whole = {name for each in shares for name in each.names}
        own = [each for each in plan.columns if each[1] not in whole]
        lean = Plan([*own, *((each.column, each.key) for each in shares)])
        rare = [column for column in packed if column in [each for each, _ in own]]
        share = plan.share(packed) * len(lean.columns) / len(plan.columns)
        query = " union all ".join(
            partitions.select(lean.projection(rare), replace(piece, source=each), conditions) for each in ALIKE
        )
        for batch in lean.unpack(source.batches(query, share), rare):
            yield _whole(plan, batch, shares)
    query = partitions.select(plan.projection(packed), rest, conditions)
    yield from plan.unpack(source.batches(query, plan.share(packed)), packed)


class _Shared:
    """Values that are sent once, in a table by a key, which each message brings as this column."""

    def __init__(self, key: str, column: Column, table: Table, names: Sequence[str]) -> None:
        table = table.sort_by(key)
        self.key, self.column, self.names = key, column, names
        self._known = table[key].to_numpy()
        self._values = {name: table[name].combine_chunks() for name in names}

    def of(self, batch: RecordBatch) -> dict[str, pyarrow.Array]:
        """The values of the messages of a batch, by name."""
        import pyarrow

        wanted = batch.column(self.key).to_numpy()
        places = np.minimum(np.searchsorted(self._known, wanted), len(self._known) - 1)
        if not np.array_equal(self._known[places], wanted):
            raise RefusedError("The history was changed while it was read.", hint="read again")
        rows = pyarrow.array(places)
        return {name: values.take(rows) for name, values in self._values.items()}


def _names(source: Source, plan: Plan) -> list[_Shared]:
    """The names of channels, where they are asked for and not too many. All that a message can be of are there."""
    asked = [name for column, name in plan.columns if column.name == "channel"]
    if not asked:
        return []
    names = ", ".join(f'name as "{name}"' for name in asked)
    table = source.table(f'select id as "{_CHANNEL}", {names} from menzil._channel_names limit {NAMES + 1}')
    return [] if len(table) > NAMES else [_Shared(_CHANNEL, Column("endpoint_id", "integer"), table, asked)]


def _whole(plan: Plan, batch: RecordBatch, shares: Sequence[_Shared]) -> RecordBatch:
    """The messages with the columns of their ends, and the names of their channels."""
    import pyarrow

    values = {name: array for each in shares for name, array in each.of(batch).items()}
    arrays = [values[name] if name in values else batch.column(name) for _, name in plan.columns]
    return pyarrow.RecordBatch.from_arrays(arrays, [name for _, name in plan.columns])
