"""Rows that come mixed, written by one task to a file for each part of the table, in order.

Rows are gathered until there are enough, divided among the parts by one pass, and written when a part has a row group.
What is already in order is not sorted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from menzil.spark.parquet.write import GROUP_BYTES, GROUP_ROWS, ROWS, OpenFile, Place, Written

#: Bytes that are gathered before they are divided, and bytes that wait for the rest of their row group, at most.
BLOCK, WAITING = 8 << 20, 128 << 20


class Divider:
    """One task: takes rows as they come, with a column that says the part of each. Reads back files that are done."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._waiting: dict[str, list[pa.Table]] = defaultdict(list)
        self._size: dict[str, int] = defaultdict(int)
        self._open: dict[str, OpenFile] = {}

    def take(self, rows: pa.Table, keys: pa.ChunkedArray) -> Iterator[Written]:
        """Divide rows. Yields the files that are done."""
        rows = rows.combine_chunks()  # once: to take rows out of several chunks puts these together each time
        coded = pc.dictionary_encode(keys).combine_chunks()
        coded = coded if isinstance(coded, pa.DictionaryArray) else coded.chunk(0)
        codes = coded.indices.to_numpy(zero_copy_only=False)
        order = _order(rows, codes)
        edges = np.searchsorted(codes[order], np.arange(len(coded.dictionary) + 1))
        for number, key in enumerate(coded.dictionary.to_pylist()):
            # A copy: a slice would keep all rows in memory for as long as the last part waits.
            mine = rows.take(pa.array(order[edges[number] : edges[number + 1]]))
            self._waiting[key].append(mine)
            self._size[key] += mine.nbytes
            if self._size[key] >= GROUP_BYTES or sum(map(len, self._waiting[key])) >= GROUP_ROWS:
                yield from self._write(key)
        while sum(self._size.values()) > WAITING:
            yield from self._write(max(self._size, key=lambda key: self._size[key]))

    def end(self) -> Iterator[Written]:
        """All that is left."""
        for key in list(self._waiting):
            yield from self._write(key)
        for file in self._open.values():
            yield file.close()
        self._open.clear()

    def _write(self, key: str) -> Iterator[Written]:
        self._size.pop(key)
        rows = pa.concat_tables(self._waiting.pop(key))
        order = _order(rows)
        if order is not None:
            rows = rows.take(pa.array(order))
        if key in self._open and self._open[key].rows + len(rows) > ROWS:
            yield self._open.pop(key).close()
        if key not in self._open:
            self._open[key] = OpenFile(self._place, key, read_back=True)
        self._open[key].group(rows)


def _order(rows: pa.Table, codes: Any = None) -> Any:
    """By part, time of creation and id; without parts None when it is so already."""
    at = rows["created_at"].cast(pa.int64()).to_numpy()
    number = rows["id"].to_numpy()
    same = (at[1:] == at[:-1]) & (number[1:] >= number[:-1])
    if bool(((at[1:] > at[:-1]) | same).all()):
        return None if codes is None else np.argsort(codes, kind="stable")
    return np.lexsort((number, at) if codes is None else (number, at, codes))
