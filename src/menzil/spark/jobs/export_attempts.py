"""All tries of messages, put together in a task: those that did not succeed, and the one that did.

The try that succeeded is the message itself; the view attempts shows it in the same way, and the fingerprint proves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from menzil.spark.parquet.proof import beside
from menzil.spark.source.relations import RELATIONS

if TYPE_CHECKING:
    from menzil.spark.source.arrow import Source

#: Of a try, in the order of the lake.
FIELDS = ("attempt", "outcome", "leased_at", "ended_at", "worker", "error", "status_code", "duration_ms")
#: What a message is asked for beside its columns.
SUCCESS = ("success_status", "success_ms")
#: The hash of a try that failed, and of the one that succeeded, as the database makes them.
HASH, SUCCESS_HASH = "_hash", "_try"

#: Messages whose ids lie closer than this are asked for by first and last id, others one by one.
NEAR = 8


def failed(source: Source, ids: pa.ChunkedArray, since: str) -> pa.Table:
    """Tries of these messages that did not succeed, by message and in order. One is not older than its message."""
    bounds = pc.min_max(ids).as_py()
    if bounds["max"] - bounds["min"] < NEAR * len(ids):
        chosen = f"message_id between {bounds['min']} and {bounds['max']}"
    else:
        chosen = f"message_id = any('{{{','.join(map(str, ids.to_pylist()))}}}'::bigint[])"
    names = ("message_id", *FIELDS)
    values = {name: RELATIONS["attempts"].column(name).expression for name in names}
    selected = ", ".join(f'{value} as "{name}"' for name, value in values.items())
    hashed = f'menzil.try_hash({", ".join(values.values())}) as "{HASH}"'
    found = list(
        source.batches(
            f"select {selected}, {hashed} from menzil.attempts where outcome <> 'completed' and {chosen} "
            f"and ended_at >= '{since}'::timestamptz"
        )
    )
    if not found:
        return pa.table({name: [] for name in (*names, HASH)})
    order = [(name, "ascending") for name in ("message_id", "attempt", "outcome", "leased_at", "ended_at")]
    return pa.Table.from_batches(found).sort_by(order)


def proof_of(rows: pa.Table, tries: pa.Table | None) -> dict[str, pa.Array]:
    """What stands beside each row for the proof: hashes of the row and of its tries."""
    success = rows[SUCCESS_HASH].combine_chunks()
    good = np.ma.array(pc.fill_null(success, 0).to_numpy(zero_copy_only=False), mask=success.is_null())
    first = count = np.zeros(len(rows), np.int64)
    found = np.zeros(0, np.int64)
    if tries is not None and len(tries):
        first, count = _of(rows, tries)
        found = tries[HASH].to_numpy()
    return beside(rows[HASH].to_numpy(), good, found, first, count)


def _of(rows: pa.Table, tries: pa.Table) -> tuple[Any, Any]:
    """Of each message its first try among these, and how many there are."""
    of, ids = tries["message_id"].to_numpy(), rows["id"].to_numpy()
    first = np.searchsorted(of, ids, "left")
    return first, np.searchsorted(of, ids, "right") - first


def attempts(rows: pa.Table, tries: pa.Table | None, kind: pa.ListType) -> pa.Array:
    """For each message a list of its tries."""
    struct = kind.value_type
    count = len(rows)
    done = pc.equal(rows["status"], "completed").combine_chunks()
    success = _structs(
        {
            "attempt": rows["num_attempts"],
            "outcome": pa.chunked_array([pa.repeat("completed", count)]),
            "leased_at": rows["leased_at"],
            "ended_at": rows["ended_at"],
            "worker": rows["worker"],
            "error": pa.chunked_array([pa.nulls(count, pa.string())]),
            "status_code": rows["success_status"],
            "duration_ms": rows["success_ms"],
        },
        struct,
    )
    is_done = done.to_numpy(zero_copy_only=False).astype(np.int64)
    if tries is None or not len(tries):
        values = success if is_done.all() else success.take(pa.array(np.flatnonzero(is_done)))
        return _lists(is_done, values, kind)
    first, others = _of(rows, tries)
    counts = others + is_done
    row = np.repeat(np.arange(count), counts)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    index = np.where(place < others[row], first[row] + place, len(tries) + row)
    pool = pa.concat_arrays([_structs({name: tries[name] for name in FIELDS}, struct), success])
    return _lists(counts, pool.take(pa.array(index)), kind)


def _structs(columns: dict[str, pa.ChunkedArray], kind: pa.StructType) -> pa.StructArray:
    arrays = [columns[field.name].cast(field.type).combine_chunks() for field in kind]
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _lists(counts: Any, values: pa.Array, kind: pa.ListType) -> pa.Array:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values, type=kind)
