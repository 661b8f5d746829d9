"""What the rows of a file must be, summed while they are written: kept in its footer, compared with what is read back.

In an export the hash of a row, and those of its tries, are made by PostgreSQL and travel beside the row. Elsewhere
(compactions, rows that come through Spark) they are made of the rows as they are written.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from menzil.spark.parquet.hash import Fields, Sum, hashes, tries_of

#: The key of the footer.
KEY = b"menzil.fingerprint"

#: Beside each row: its hash, how many tries it has, how many of them failed, and the hashes of all: the sums of their
#: upper and of their lower halves, which cannot overflow, and their xor.
BESIDE = ("_hash", "_tries", "_failed", "_high", "_low", "_xor")

#: Name and kind of the columns that take part: of a row, and of a try.
Shape = tuple[Fields, Fields]


class Proof:
    """Of the rows that one file gets."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._rows, self._tries = Sum(), Sum()
        self._bounds: dict[str, int] = {}
        self._ids = self._failed = self._failed_ids = 0

    def add(self, rows: pa.Table) -> None:
        """More rows, with the columns beside them where the database hashed them."""
        if not len(rows):
            return
        for name in (name for name in ("id", "created_at") if name in rows.column_names):
            seen = pc.min_max(rows[name].cast(pa.int64())).as_py()
            self._bounds[f"min_{name}"] = min(seen["min"], self._bounds.get(f"min_{name}", seen["min"]))
            self._bounds[f"max_{name}"] = max(seen["max"], self._bounds.get(f"max_{name}", seen["max"]))
        if BESIDE[0] in rows.column_names:
            self._take(rows)
        else:
            self._make(rows)

    def _take(self, rows: pa.Table) -> None:
        row, count, failed, high, low, xor = (rows[name].to_numpy() for name in BESIDE)
        ids = rows["id"].to_numpy()
        self._rows.add(row)
        self._tries.count += int(count.sum())
        self._tries.sum += (int(high.sum()) << 32) + int(low.sum())
        self._tries.xor ^= int(np.bitwise_xor.reduce(xor))
        self._ids += _whole(ids, np.ones(len(ids), np.int64))
        self._failed += int(failed.sum())
        self._failed_ids += _whole(ids, failed)

    def _make(self, rows: pa.Table) -> None:
        for batch in rows.to_batches():
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            self._rows.add(hashes(columns, self._shape[0], len(batch)))
            if self._shape[1] and "attempts" in columns:
                self._tries.add(tries_of(columns["id"], columns["attempts"], self._shape[1]))

    @property
    def fingerprint(self) -> dict[str, Any]:
        """As hash.of_file says it of the file."""
        return {
            "rows": self._rows.count, "sum": str(self._rows.sum), "xor": self._rows.xor, **self._bounds,
            "attempts": self._tries.count, "attempts_sum": str(self._tries.sum), "attempts_xor": self._tries.xor,
        }  # fmt: skip

    @property
    def census(self) -> tuple[int, int, int, int]:
        """Messages, the sum of their ids, tries that failed, the sum of the ids of their messages."""
        return self._rows.count, self._ids, self._failed, self._failed_ids

    @property
    def footer(self) -> dict[bytes, bytes]:
        """For the footer of the file."""
        return {KEY: json.dumps(self.fingerprint, separators=(",", ":")).encode()}


def in_footer(file: pq.ParquetFile) -> dict[str, Any] | None:
    """What the footer says; None for a file that menzil did not write, or not with a fingerprint."""
    text = (file.metadata.metadata or {}).get(KEY)
    return None if text is None else dict(json.loads(text))


def beside(row: Any, success: Any, tries: Any, first: Any, failed: Any) -> dict[str, pa.Array]:
    """The columns beside rows, of hashes that the database made: of each row, of the try of it that succeeded (masked
    where none did), and of all tries that failed, of which a row has `failed`, from `first` on."""
    done = ~np.ma.getmaskarray(success)
    good = np.ma.filled(success, 0)
    columns = {BESIDE[0]: row, BESIDE[1]: done + failed, BESIDE[2]: failed}
    for name, part in ((BESIDE[3], _high), (BESIDE[4], _low)):
        sums = np.concatenate(([0], np.cumsum(part(tries))))
        columns[name] = part(good) * done + sums[first + failed] - sums[first]
    xors = np.concatenate(([0], np.bitwise_xor.accumulate(tries))) if len(tries) else np.zeros(1, np.int64)
    columns[BESIDE[5]] = good * done ^ xors[first + failed] ^ xors[first]
    return {name: pa.array(column.astype(np.int64)) for name, column in columns.items()}


def _high(found: Any) -> Any:
    return found >> 32


def _low(found: Any) -> Any:
    return found & 0xFFFFFFFF


def _whole(ids: Any, times: Any) -> int:
    """The sum of ids, each so many times, in halves that cannot overflow."""
    return (int((_high(ids) * times).sum()) << 32) + int((_low(ids) * times).sum())
