"""pyiceberg's files, written to the disk before they count: the pointer of the catalog survives a power cut at once."""

from __future__ import annotations

from typing import Any

from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from menzil.spark.lake.place import local
from menzil.spark.parquet.sync import sync


class DurableFileIO(PyArrowFileIO):
    """PyArrowFileIO, but a local file is synced when it is closed. Object stores keep what was closed."""

    def new_output(self, location: str) -> PyArrowFile:
        """A file that is about to be written."""
        made = super().new_output(location)
        path = local(location)
        return made if path is None else _Synced(made, path)  # type: ignore[return-value]


class _Synced:
    """An output file whose stream is synced."""

    def __init__(self, file: PyArrowFile, path: str) -> None:
        self._file, self._path = file, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __len__(self) -> int:
        return len(self._file)

    def create(self, overwrite: bool = False) -> OutputStream:
        """Open it."""
        return _Stream(self._file.create(overwrite=overwrite), self._path)


class _Stream:
    def __init__(self, stream: OutputStream, path: str) -> None:
        self._stream, self._path = stream, path

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, content: bytes) -> int:
        """Write."""
        return self._stream.write(content)

    def close(self) -> None:
        """Close, then wait for the disk."""
        self._stream.close()
        sync(self._path)
