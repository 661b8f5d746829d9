"""Files of the lake, read by tasks with pyarrow: wherever Spark itself has no file system."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from menzil.spark.frozen import freeze_modules

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

#: Rows of a batch.
BATCH = 10_000

#: What pyarrow's clients of stores write into their errors, which have no number.
_STORES = ("AWS Error", "Azure Error", "google::cloud")


def task(files: FileSystem, shape: pa.Schema) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """For mapInArrow over paths: their rows, in these columns. One that a file lacks is NULL."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_modules()
        for batch in batches:
            for path in batch.column(0).to_pylist():
                with files.open_input_file(path) as stream:
                    yield from _rows(pq.ParquetFile(stream, page_checksum_verification=True), shape)

    return run


def _rows(file: pq.ParquetFile, shape: pa.Schema) -> Iterator[pa.RecordBatch]:
    there = [name for name in shape.names if name in file.schema_arrow.names]
    for batch in file.iter_batches(BATCH, columns=there):
        arrays = [
            batch.column(field.name).cast(field.type) if field.name in there else pa.nulls(len(batch), field.type)
            for field in shape
        ]
        yield pa.record_batch(arrays, schema=shape)


def of_store(error: Exception) -> bool:
    """Whether a store does not answer or does not give a file, which says nothing about the file.

    Such errors have a number of the system, or the name of a store; those of pages that are not as written have none.
    A disk that cannot read its blocks has lost them.
    """
    if not isinstance(error, OSError) or error.errno in (errno.ENOENT, errno.EIO):
        return False
    return error.errno is not None or any(name in str(error) for name in _STORES)


def damage(files: FileSystem, path: str, size: int, rows: int, *, whole: bool = False) -> str | None:
    """What is wrong with a file, as the end of a sentence; with `whole` every page is read.

    Raises an error of the store as it is.
    """
    about = files.get_file_info(path)
    if not about.is_file:
        return "is missing."
    if about.size != size:
        return f"has {about.size:,} bytes, not {size:,}."
    try:
        with files.open_input_file(path) as stream:
            file = pq.ParquetFile(stream, page_checksum_verification=True)
            if file.metadata.num_rows != rows:
                return f"has {file.metadata.num_rows:,} rows, not {rows:,}."
            for _ in file.iter_batches(BATCH) if whole else ():
                pass
    except (pa.ArrowException, OSError) as error:
        if of_store(error):
            raise
        return f"cannot be read: {str(error).splitlines()[0]}."
    return None
