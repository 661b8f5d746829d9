"""A driver with two executors of its own, which the test kills: `python -m tests.spark.cluster_driver DIR ROWS`.

It sends three times. Partition 1 lingers after it has written, before Spark knows: that is when its executor is killed,
and the last time the driver itself. DIR is where the two processes meet; its file `dsn` names the database.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from menzil.spark.session import get_session
from menzil.spark.source.writer import MenzilWriter
from tests.spark import mapped

PARTITIONS = 8


class NaiveWriter(DataSourceArrowWriter):
    """What one writes first: each task sends its own rows, in a transaction of its own."""

    def __init__(self, options: Any) -> None:
        self.dsn = options["dsn"]

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        import psycopg

        with psycopg.connect(self.dsn) as conn:
            for batch in iterator:
                payloads = batch.column("payload").to_pylist()
                conn.execute("select menzil.send_batch('naive', %s::text[]::jsonb[])", [payloads])
        return WriterCommitMessage()


class LingeringWriter(DataSourceArrowWriter):
    """Another writer, whose first try of partition 1 has written and does not come back."""

    def __init__(self, writer: DataSourceArrowWriter, place: str) -> None:
        self.writer, self.place = writer, Path(place)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        from pyspark import TaskContext

        message = self.writer.write(iterator)
        if TaskContext.get().partitionId() == 1 and not self.place.exists():
            draft = self.place.with_suffix(f".{os.getpid()}")
            draft.write_text(str(executor_of(os.getpid())))
            draft.rename(self.place)  # there at once and whole
            deadline = time.monotonic() + 120
            while time.monotonic() < deadline and os.getppid() > 1:
                time.sleep(0.05)
            os._exit(1)
        return message

    def commit(self, messages: Any) -> None:
        self.writer.commit(messages)

    def abort(self, messages: Any) -> None:
        self.writer.abort(messages)


def executor_of(pid: int) -> int:
    """The Java process above this one."""
    while Path(f"/proc/{pid}/comm").read_text().strip() != "java":
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid


class ClusterSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "lingering"

    def writer(self, schema: Any, overwrite: bool) -> LingeringWriter:
        naive = self.options.get("naive")
        theirs = {name: value for name, value in self.options.items() if name.lower() not in ("place", "naive")}
        writer = NaiveWriter(self.options) if naive else MenzilWriter(theirs, schema, overwrite)
        return LingeringWriter(writer, self.options["place"])


def home(place: Path) -> Path:
    """A SPARK_HOME for executors, which they need and litter.

    Without its `python`: from there workers would import a zip of PySpark, and compile it anew each time.
    """
    made = place / "spark"
    made.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        if each.name != "python":
            (made / each.name).symlink_to(each)
    return made


def main(place: Path, rows: int) -> None:
    dsn = (place / "dsn").read_text()
    os.environ |= {"SPARK_HOME": str(home(place)), "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": mapped.options()}
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraClassPath": mapped.class_path(),
        "spark.executor.extraClassPath": mapped.class_path(),
        "spark.task.maxFailures": "4",
    }
    spark = get_session("cluster", "local-cluster[2,1,1024]", quick=True, conf=conf)
    spark.dataSource.register(ClusterSource)
    (place / "up").touch()

    def write(name: str, count: int, **options: str) -> None:
        frame = spark.range(0, count, 1, PARTITIONS).selectExpr("cast(id as string) as payload")
        chosen = {"dsn": dsn, "place": str(place / name), **options}
        frame.write.format("lingering").options(**chosen).mode("append").save()
        (place / f"{name}.done").write_text(json.dumps({"rows": count}))

    write("naive", 8_000, naive="yes")
    write("executor", rows, endpoint="exact", sendId="executor")
    write("driver", rows, endpoint="exact", sendId="driver")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
