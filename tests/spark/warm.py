"""Make the archive of Java's classes that later JVMs map: `python -m tests.spark.warm`.

A fresh checkout has none, and every JVM of the tests, most of which are killed before they could leave one, would load
its classes from jars. What runs here is a bit of everything, so that it is in there. It is made beside the first tests,
long before those of Spark begin.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from menzil.embedded import Embedded
from menzil.install import migrate
from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.session import get_session
from menzil.spark.session.java import find_java
from menzil.spark.session.launch import command, end
from tests.spark.lake_history import fill

#: Held while it is made. An archive is that of the Spark of one environment.
LOCK = Path(sys.prefix) / "warm.lock"


def there() -> bool:
    """Whether a JVM that is started now maps an archive, or could not make one."""
    words = command(find_java(), {"spark.master": "local[2]"}, quick=True)
    return not any(word.startswith(("-XX:ArchiveClassesAtExit=", "-XX:AOTMode=record")) for word in words)


def begin() -> None:
    """Have it made by a process of its own, unless it is there or another process makes it."""
    if there():
        return
    with LOCK.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        # The process inherits the lock, and lets go of it by ending.
        subprocess.Popen(
            [sys.executable, "-m", "tests.spark.warm"],
            pass_fds=(lock.fileno(),),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


def wait(seconds: float = 120) -> None:
    """Until the archive is made, but not longer than this. Without an archive everything works, only later."""
    deadline = time.monotonic() + seconds
    with LOCK.open("a") as lock:
        while time.monotonic() < deadline:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.1)


def main(place: Path) -> None:
    os.nice(5)
    place.chmod(0o755)
    server = Embedded(place / "pg", durable=False).start()
    migrate(server.dsn)
    fill(server.dsn, 1, 20)
    spark = get_session("warm", "local[2]", quick=True)
    export(spark, server.dsn, place / "lake")
    assert lake.verify(place / "lake", server.dsn, spark=spark).ok
    assert lake.read(spark, place / "lake").groupBy("status").count().collect()
    spark.stop()
    end(300)  # it writes the archive as it ends
    server.close(wait=30)
    deadline = time.monotonic() + 60
    while not there() and time.monotonic() < deadline:  # adopted when nothing has written to it for a while
        time.sleep(0.5)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="mz-", ignore_cleanup_errors=True) as made:
        main(Path(made))
