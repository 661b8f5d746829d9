"""What a session of ours is set to, on a laptop and on a cluster."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

#: Names of options and settings whose values must not be seen: in plans, the UI, event logs.
SECRET_NAMES = "(?i)secret|password|passwd|token|access.?key|credential|dsn|conninfo"

_ALWAYS = {
    # What is compared with PostgreSQL must not depend on where the laptop stands.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Off by default in Spark, and then every reader that takes filters is refused.
    "spark.sql.python.filterPushdown.enabled": "true",
    # Java would be told, in five calls each, on which line of a program every column was made.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.redaction.regex": SECRET_NAMES,
    "spark.sql.redaction.options.regex": f"{SECRET_NAMES}|url",
    "spark.ui.showConsoleProgress": "false",  # ours says how far in fewer words
    "spark.ui.enabled": "false",
    # Spark warns of a plan that it does not print whole, and a message has more than 25 columns.
    "spark.sql.debug.maxToStringFields": "200",
}
#: Spark sets this one itself for programs that it takes for a shell.
_ANYWAY = ("spark.ui.showConsoleProgress",)
_HIDING = ("spark.redaction.regex", "spark.sql.redaction.options.regex")
_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    # A Python worker that is kept saves a second per stage.
    "spark.python.worker.reuse": "true",
}
#: Short work on little data: few partitions, and no rounds of planning between stages.
_QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.shuffle.compress": "false",
}


def is_local(master: str) -> bool:
    """Whether driver and executors are one process on this machine."""
    return master == "local" or master.startswith("local[")


def settings(master: str, theirs: Mapping[str, str] | None = None, *, quick: bool = False) -> dict[str, str]:
    """The settings of a new session, without those that spark-submit or Spark's configuration has made."""
    chosen = dict(_ALWAYS)
    if is_local(master):
        chosen |= _LOCAL
    if quick:
        chosen |= _QUICK
    made = theirs or {}
    chosen = {name: value for name, value in chosen.items() if name not in made or name in _ANYWAY}
    for name in _HIDING:  # a pattern of theirs hides more, never less
        if name in made and made[name] != chosen.get(name):
            chosen[name] = f"{made[name]}|{_ALWAYS[name]}"
    return chosen


def set_python() -> None:
    """Runs on the driver, before any JVM starts: workers, and those that plan, run this Python. What is set stays."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def set_environment(master: str) -> None:
    """Runs on the driver, before its JVM starts. What the user set stays."""
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
