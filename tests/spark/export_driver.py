"""A driver with two executors of its own that exports when it is told: `python -m tests.spark.export_driver DIR`.

DIR is a SPARK_HOME that executors may litter. Each line of the input is a connection string's file, a lake and a run,
between tabs; each line of the output says how many rows were exported, or why none were.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from menzil.model.errors import MenzilError
from menzil.spark.jobs.export import export
from menzil.spark.session import get_session
from tests.spark import mapped
from tests.spark.cluster_driver import home


def main(place: Path) -> None:
    os.environ |= {"SPARK_HOME": str(home(place)), "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": mapped.options()}
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.driver.extraClassPath": mapped.class_path(),
        "spark.executor.extraClassPath": mapped.class_path(),
        "spark.deploy.maxExecutorRetries": "-1",
        "spark.task.maxFailures": "8",
    }
    spark = get_session("exports", "local-cluster[2,1,1024]", quick=True, conf=conf)
    print("up", flush=True)
    for line in sys.stdin:
        dsn, lake, run = line.rstrip("\n").split("\t")
        try:
            print(f"exported {export(spark, Path(dsn).read_text(), lake, run_id=run).rows}", flush=True)
        except MenzilError as error:
            print(f"refused {error.message}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
