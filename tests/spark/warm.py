"""Make the archive of Java's classes that later JVMs map: `python -m tests.spark.warm LAKE`, MENZIL_DSN set.

A fresh checkout has none, and every JVM of the tests, most of which are killed before they could leave one, would load
its classes from jars. What runs here is a bit of everything, so that it is in there.
"""

from __future__ import annotations

import os
import sys
import time

from menzil.spark import lake
from menzil.spark.jobs.export import export
from menzil.spark.session import get_session
from menzil.spark.session.java import find_java
from menzil.spark.session.launch import command, end


def there() -> bool:
    """Whether a JVM that is started now maps an archive, or could not make one."""
    words = command(find_java(), {"spark.master": "local[2]"}, quick=True)
    return not any(word.startswith(("-XX:ArchiveClassesAtExit=", "-XX:AOTMode=record")) for word in words)


def main(place: str) -> None:
    dsn = os.environ["MENZIL_DSN"]
    spark = get_session("warm", "local[2]", quick=True)
    export(spark, dsn, place)
    assert lake.verify(place, dsn, spark=spark).ok
    assert lake.read(spark, place).groupBy("status").count().collect()
    spark.stop()
    end()
    deadline = time.monotonic() + 60
    while not there() and time.monotonic() < deadline:  # adopted when nothing has written to it for a while
        time.sleep(0.5)


if __name__ == "__main__":
    main(sys.argv[1])
