"""Files of the lake, written by tasks with pyarrow: real field ids, object stores without a jar, no rename.

A task writes straight to the final place, under names that no other attempt uses, and returns a line per file with its
footer. A file that no snapshot names does not exist; only what the successful attempts returned is committed.
"""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from menzil.spark.frozen import freeze_modules
from menzil.spark.parquet.hash import of_file
from menzil.spark.parquet.proof import BESIDE, Proof, Shape

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

#: Rows of a file; rows, and bytes before compression, of a row group: what one task keeps in memory.
ROWS = 1_000_000
GROUP_ROWS, GROUP_BYTES = 50_000, 32 << 20

#: The column that says to which part of the table a row belongs. It is not written.
KEY = "_key"

#: Columns whose values hardly ever repeat: a dictionary of them costs time and makes the file larger.
UNIQUE = frozenset({"id", "created_at", "payload", "payload_hash", "idempotency_key", "correlation_id"})

LINE = pa.schema([("line", pa.binary())])


@dataclass(frozen=True)
class Written:
    """A file: which part of the table, where, how large, and its footer.

    Where rows come with their hashes: what the database said of them, how many there were, and what was read back.
    """

    key: str
    path: str
    size: int
    rows: int
    footer: Any
    ordered: bool = True  # by time of creation and id, from the first row to the last
    said: dict[str, Any] | None = None
    census: tuple[int, int, int, int] | None = None
    found: dict[str, Any] | None = None


def lines(found: Iterable[bytes]) -> list[Written]:
    """What tasks returned."""
    return [pickle.loads(line) for line in found]


@dataclass(frozen=True)
class Place:
    """Where files of a table go, and what they look like."""

    files: FileSystem
    path: str
    shape: pa.Schema
    bounded: tuple[str, ...]
    hashed: Shape


def task(place: Place) -> Callable[[Any], Iterator[Any]]:
    """For mapInArrow: write batches, in which the rows of a key lie together, to this place."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_modules()
        writer = Writer(place)
        for batch in batches:
            for done in writer.take(pa.Table.from_batches([batch])):
                yield line(done)
        for done in writer.end():
            yield line(done)

    return run


def line(written: Written) -> pa.RecordBatch:
    """What a task returns of a file."""
    return pa.record_batch({"line": [pickle.dumps(written)]}, schema=LINE)


class Writer:
    """Writes tables of rows to files, one key at a time."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._open: OpenFile | None = None

    def take(self, rows: pa.Table) -> Iterator[Written]:
        """Rows in order of their key. Yields the files that are done."""
        at = 0
        while at < len(rows):
            keys = rows.column(KEY).slice(at)
            key = keys[0].as_py()
            other = pc.index(pc.not_equal(keys, key), True).as_py()
            end = len(rows) if other < 0 else at + other
            if self._open is not None and (self._open.key != key or self._open.rows >= ROWS):
                yield from self.end()
            if self._open is None:
                self._open = OpenFile(self._place, key)
            end = min(end, at + ROWS - self._open.rows)
            self._open.add(rows.slice(at, end - at))
            at = end

    def end(self) -> Iterator[Written]:
        """The file that is open, done."""
        if self._open is not None:
            done, self._open = self._open.close(), None
            yield done


class OpenFile:
    """A file that is being written, under a name that no other attempt uses."""

    def __init__(self, place: Place, key: str, *, read_back: bool = False) -> None:
        self.key, self.path, self.rows = key, f"{place.path}/{uuid.uuid4().hex}.parquet", 0
        self._proof, self._hashed, self._read_back = Proof(place.hashed), place.hashed, read_back
        self._last: tuple[Any, ...] | None = None
        self._ordered = True
        self._files, self._shape, self._footer = place.files, place.shape, []  # type: ignore[var-annotated]
        self._waiting: list[pa.Table] = []
        self._size = self._count = 0
        if _is_local(self._files):
            self._files.create_dir(place.path, recursive=True)
        self._stream = self._files.open_output_stream(self.path)
        # Without the schema of Arrow, whose large types Spark does not read; page checksums tell a damaged file.
        self._writer = pq.ParquetWriter(
            self._stream, self._shape, compression="zstd", metadata_collector=self._footer, store_schema=False,
            write_statistics=list(place.bounded), write_page_checksum=True, use_dictionary=_repeated(self._shape),
        )  # fmt: skip

    def add(self, rows: pa.Table) -> None:
        """Rows that follow those before; they are written when they make a row group."""
        self._waiting.append(rows)
        self.rows += len(rows)
        self._count += len(rows)
        self._size += rows.nbytes
        if self._count >= GROUP_ROWS or self._size >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self._write(pa.concat_tables(self._waiting))
            self._waiting, self._size, self._count = [], 0, 0

    def group(self, rows: pa.Table) -> None:
        """Rows that are a row group, in order among themselves."""
        first, last = ((rows["created_at"][at].value, rows["id"][at].as_py()) for at in (0, len(rows) - 1))
        self._ordered = self._ordered and (self._last is None or self._last <= first)
        self._last = last
        self.rows += len(rows)
        self._write(rows)

    def _write(self, rows: pa.Table) -> None:
        whole = rows.select(self._shape.names).cast(self._shape)
        self._proof.add(rows if BESIDE[0] in rows.column_names else whole)
        self._writer.write_table(whole, row_group_size=min(len(whole), GROUP_ROWS))

    def close(self) -> Written:
        """The file is done, and survives a power cut."""
        self._flush()
        self._writer.add_key_value_metadata(self._proof.footer)
        self._writer.close()
        self._stream.close()
        if _is_local(self._files):
            from menzil.spark.parquet.sync import sync

            sync(self.path)
        size = self._files.get_file_info(self.path).size
        done = Written(self.key, self.path, size, self.rows, self._footer[0], self._ordered)
        if not self._read_back:
            return done
        with self._files.open_input_file(self.path) as stream:
            found = of_file(pq.ParquetFile(stream, page_checksum_verification=True), *self._hashed)
        return replace(done, said=self._proof.fingerprint, census=self._proof.census, found=found)


def _repeated(shape: pa.Schema) -> list[str]:
    """The columns that get a dictionary, as Parquet names them."""
    paths = []
    for field in shape:
        if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            paths += [f"{field.name}.list.element.{each.name}" for each in field.type.value_type]
        elif field.name not in UNIQUE:
            paths.append(field.name)
    return paths


def _is_local(files: FileSystem) -> bool:
    return bool(files.type_name == "local")
