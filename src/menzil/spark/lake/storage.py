"""Files of a lake: on this machine's file system, or wherever Hadoop reaches. Paths are relative to the lake."""

from __future__ import annotations

import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from menzil.model.errors import UsageError
from menzil.spark.lake.errors import LakeDamagedError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Found:
    """A file; `at` is its time of change in seconds."""

    path: str
    size: int
    at: float


class Storage(Protocol):
    """What a lake needs of a file system."""

    root: str

    def read(self, path: str) -> bytes: ...
    def put(self, path: str, content: bytes) -> bool:
        """Make a whole file that nobody sees half of; False if there is one already."""
        ...

    def size(self, path: str) -> int | None: ...
    def list(self, path: str) -> list[Found]:
        """All files below a directory; none if there is no such directory."""
        ...

    def move(self, source: str, target: str) -> None:
        """Rename; having been done already is fine."""
        ...

    def sync(self, path: str) -> None:
        """Let a file, or the names in a directory, survive a power cut. Not being there is fine."""
        ...

    def remove(self, path: str) -> None:
        """Remove a file or a tree; not being there is fine."""
        ...


def open_storage(lake: str | os.PathLike[str], spark: SparkSession | None = None) -> Storage:
    """The storage of a lake. Only a place that is not a local directory needs Spark."""
    text = os.fspath(lake)
    scheme = urlsplit(text).scheme if "://" in text or text.startswith("file:") else ""
    if scheme in ("", "file"):
        local = LocalStorage(unquote(urlsplit(text).path) if scheme else text)
        if spark is not None:
            _demand_name(local.root, spark)
        return local
    if spark is None:
        raise UsageError(f"{scheme}:// is reached through Spark.", hint="pass spark=…")
    from menzil.spark.lake.hadoop import HadoopStorage

    return HadoopStorage(text, spark)


def _demand_name(root: str, spark: SparkSession) -> None:
    """Refuse a directory whose name Java would write with question marks: the lake would lie elsewhere."""
    if root.isascii():
        return
    encoding = str(spark._jvm.java.lang.System.getProperty("sun.jnu.encoding"))  # type: ignore[union-attr]
    try:
        root.encode(encoding)
    except UnicodeEncodeError:
        sentence = f"The Java of this session names files in {encoding}, which has not all letters of {root!r}."
        raise UsageError(sentence, hint="set LC_ALL=C.UTF-8 before Spark starts, or choose another directory") from None


class LocalStorage:
    """Directories of this machine, or mounted on it."""

    def __init__(self, root: str) -> None:
        self.root = str(Path(root).absolute())

    def _path(self, path: str) -> Path:
        return Path(self.root) / path

    def read(self, path: str) -> bytes:
        return self._path(path).read_bytes()

    def put(self, path: str, content: bytes) -> bool:
        target = self._path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        half = target.with_name(f".{target.name}.{uuid4().hex}")
        with half.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(half, target)  # unlike a rename, a link does not replace
        except FileExistsError:
            return False
        finally:
            half.unlink()
        _sync(target.parent)
        return True

    def size(self, path: str) -> int | None:
        try:
            return self._path(path).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def list(self, path: str) -> list[Found]:
        found = []
        for place, _, names in os.walk(self._path(path)):
            for name in names:
                file = Path(place) / name
                try:
                    about = file.stat()
                except FileNotFoundError:
                    continue
                found.append(Found(file.relative_to(self.root).as_posix(), about.st_size, about.st_mtime))
        return sorted(found, key=lambda each: each.path)

    def move(self, source: str, target: str) -> None:
        before, after = self._path(source), self._path(target)
        after.parent.mkdir(parents=True, exist_ok=True)
        try:
            before.rename(after)
        except FileNotFoundError:
            if not after.exists():
                raise LakeDamagedError(f"{source} is gone before it was published.") from None

    def sync(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            _sync(self._path(path))

    def remove(self, path: str) -> None:
        target = self._path(path)
        if target.is_dir():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Write a file, or the names of a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
