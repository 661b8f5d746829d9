"""Files of a lake through Hadoop's FileSystem, in Spark's JVM. Everything here runs on the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from menzil.spark.lake.errors import LakeDamagedError
from menzil.spark.lake.storage import Found

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopStorage:
    """A directory that a URL names: hdfs://, s3a://, abfs:// …

    Where a rename does not replace, as in HDFS, two writers cannot publish the same number. Object stores have no such
    rename; there an export relies on the lock it holds in PostgreSQL.
    """

    def __init__(self, root: str, spark: SparkSession) -> None:
        self.root = root.rstrip("/")
        self._jvm: Any = spark._jvm
        self._context: Any = spark._jsc
        assert self._jvm is not None
        self._files: Any = self._path("").getFileSystem(self._context.hadoopConfiguration())

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{path}" if path else self.root)

    def read(self, path: str) -> bytes:
        stream = self._files.open(self._path(path))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def put(self, path: str, content: bytes) -> bool:
        target, half = self._path(path), self._path(f"{path}.{uuid4().hex}")
        if self._files.exists(target):
            return False
        self._files.mkdirs(target.getParent())
        stream = self._files.create(half, True)
        try:
            stream.write(bytearray(content))
        finally:
            stream.close()
        return bool(self._files.rename(half, target))

    def size(self, path: str) -> int | None:
        target = self._path(path)
        return int(self._files.getFileStatus(target).getLen()) if self._files.exists(target) else None

    def list(self, path: str) -> list[Found]:
        if not self._files.exists(self._path(path)):
            return []
        base = self._files.makeQualified(self._path("")).toUri().getPath().rstrip("/")
        found, files = [], self._files.listFiles(self._path(path), True)
        while files.hasNext():
            about = files.next()
            name = about.getPath().toUri().getPath()[len(base) + 1 :]
            found.append(Found(name, int(about.getLen()), about.getModificationTime() / 1000))
        return sorted(found, key=lambda each: each.path)

    def move(self, source: str, target: str) -> None:
        before, after = self._path(source), self._path(target)
        self._files.mkdirs(after.getParent())
        if self._files.exists(before) and not self._files.exists(after):
            self._files.rename(before, after)
        if not self._files.exists(after):
            raise LakeDamagedError(f"{source} is gone before it was published.")

    def sync(self, path: str) -> None:
        """Nothing to do: these stores keep what a closed stream has written."""

    def remove(self, path: str) -> None:
        self._files.delete(self._path(path), True)
