"""The hashes of rows in a file, made with Arrow: what the fingerprint of rows is summed from. Runs in tasks.

The text of a row is the one of menzil.spark.lake.fingerprint, which says why it looks so. Columns become texts as a
whole; only md5 is called for each row.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from hashlib import md5

    from pyarrow.fs import FileSystem
else:
    try:  # of Python itself: OpenSSL takes longer to begin than to hash a row
        from _md5 import md5
    except ImportError:
        from hashlib import md5

#: Rows of a batch.
BATCH = 20_000
#: Microseconds from 1970 to 2000.
_EPOCH = 946_684_800_000_000
_BETWEEN, _NULL = "\x1f", "\x1e"

#: Name and kind of each column, in the order of the text.
Fields = Sequence[tuple[str, str]]

#: What is found of a file. Sums are texts: they have more than 64 bits.
FOUND = pa.schema(
    [
        ("path", pa.string()), ("rows", pa.int64()), ("sum", pa.string()), ("xor", pa.int64()),
        ("min_id", pa.int64()), ("max_id", pa.int64()), ("min_created_at", pa.int64()), ("max_created_at", pa.int64()),
        ("attempts", pa.int64()), ("attempts_sum", pa.string()), ("attempts_xor", pa.int64()), ("error", pa.string()),
    ]
)  # fmt: skip
DDL = "path string, rows bigint, sum string, xor bigint, min_id bigint, max_id bigint, min_created_at bigint, " \
      "max_created_at bigint, attempts bigint, attempts_sum string, attempts_xor bigint, error string"  # fmt: skip


def task(files: FileSystem, row: Fields, attempt: Fields) -> Callable[[Sequence[str]], Iterator[pa.RecordBatch]]:
    """For a task with some paths: a line for each. Every page is read, and its checksum verified.

    A file of a disk that cannot be read is told in its line: a task that fails is tried again, each time in a new
    process. An object store may answer the next time.
    """

    def run(paths: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for path in paths:
            found: dict[str, Any]
            try:
                with files.open_input_file(path) as stream:
                    found = of_file(pq.ParquetFile(stream, page_checksum_verification=True), row, attempt)
            except (pa.ArrowException, OSError) as error:
                if files.type_name != "local":
                    raise
                found = {"error": str(error).splitlines()[0]}
            yield pa.RecordBatch.from_pylist([{"path": path, **found}], FOUND)

    return run


def of_file(file: pq.ParquetFile, row: Fields, attempt: Fields) -> dict[str, Any]:
    """The numbers of all rows."""
    whole, tries = Sum(), Sum()
    bounds: dict[str, int | None] = dict.fromkeys(("min_id", "max_id", "min_created_at", "max_created_at"))
    there = {name for name, _ in row} | ({"attempts"} if attempt else set())
    names = [name for name in file.schema_arrow.names if name in there]
    for batch in file.iter_batches(BATCH, columns=names, use_threads=False):
        if not len(batch):
            continue
        columns = {name: batch.column(name) for name in names}
        whole.add(hashes(columns, row, len(batch)))
        for name in ("id", "created_at"):
            seen = pc.min_max(columns[name].cast(pa.int64())).as_py()
            for side, choose in (("min", min), ("max", max)):
                before = bounds[f"{side}_{name}"]
                bounds[f"{side}_{name}"] = seen[side] if before is None else choose(before, seen[side])
        if attempt and "attempts" in columns:
            tries.add(tries_of(columns["id"], columns["attempts"], attempt))
    return {
        "rows": whole.count, "sum": str(whole.sum), "xor": whole.xor, **bounds,
        "attempts": tries.count, "attempts_sum": str(tries.sum), "attempts_xor": tries.xor,
    }  # fmt: skip


class Sum:
    """Hashes, summed and xored, so that their order does not matter."""

    def __init__(self) -> None:
        self.count = self.sum = self.xor = 0

    def add(self, found: Any) -> None:
        """More of them."""
        self.count += len(found)
        # A sum of halves cannot overflow.
        self.sum += (int((found >> 32).sum()) << 32) + int((found & 0xFFFFFFFF).sum())
        self.xor ^= int(np.bitwise_xor.reduce(found)) if len(found) else 0


def tries_of(ids: pa.Array, lists: pa.Array, attempt: Fields) -> Any:
    """The hash of each try in these lists, one after the other."""
    inner = pc.list_flatten(lists)
    columns = {name: inner.field(name) for name, _ in attempt}  # no try is NULL
    columns["id"] = ids.take(pc.list_parent_indices(lists))
    return hashes(columns, [("id", "number"), *attempt], len(inner))


def hashes(columns: dict[str, pa.Array], fields: Fields, count: int) -> Any:
    """The hash of each row. A column that a file does not have is NULL there."""
    if not count:
        return np.zeros(0, np.int64)
    texts = []
    for name, kind in fields:
        text = _TEXTS[kind](columns[name]) if name in columns else pa.nulls(count, pa.large_string())
        texts.append(pc.fill_null(text.cast(pa.large_string()), _NULL))
    joined = pc.binary_join_element_wise(*texts, pa.scalar(_BETWEEN, pa.large_string()))
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset : joined.offset + count + 1]
    body = memoryview(joined.buffers()[2] or b"")
    edges = offsets.tolist()
    digests = b"".join(md5(body[first:end], usedforsecurity=False).digest() for first, end in pairwise(edges))
    return np.frombuffer(digests, ">i8")[::2].astype(np.int64)


def _number(column: pa.Array) -> pa.Array:
    return column.cast(pa.large_string())


def _text(column: pa.Array) -> pa.Array:
    texts = column.cast(pa.large_string())
    return pc.binary_join_element_wise(pa.scalar("=", pa.large_string()), texts, pa.scalar("", pa.large_string()))


def _bytes(column: pa.Array) -> pa.Array:
    if column.null_count == len(column):
        return pa.nulls(len(column), pa.large_string())
    return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.large_string())


def _time(column: pa.Array) -> pa.Array:
    numbers = pc.fill_null(column.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), _EPOCH)
    moved = numbers.to_numpy(zero_copy_only=False) - _EPOCH
    digits = pa.py_buffer(binascii.hexlify(moved.astype(">i8").tobytes()))
    edges = pa.py_buffer(np.arange(0, 16 * len(moved) + 1, 16, dtype=np.int64))
    texts = pa.LargeStringArray.from_buffers(len(moved), edges, digits)
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.large_string())) if column.null_count else texts


def _micros(column: pa.Array) -> pa.Array:
    within = np.clip(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False), -9e14, 9e14)
    texts = pa.array(np.floor(within * 1000.0).astype(np.int64)).cast(pa.large_string())
    return pc.if_else(column.is_valid(), texts, pa.scalar(None, pa.large_string()))


_TEXTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "number": _number, "text": _text, "bytes": _bytes, "time": _time, "micros": _micros,
}  # fmt: skip
