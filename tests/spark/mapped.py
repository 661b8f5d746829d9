"""What lets a Java that Spark's own scripts start map the classes that `warm` has archived, instead of loading them.

Java takes an archive where the class path begins with the jars it was made with, in their order. Spark puts an extra
class path before its own jars, so these are named there once more, and everything else stays as it is.
"""

from __future__ import annotations

from menzil.spark.session.java import find_java
from menzil.spark.session.launch import command

_KEPT = ("-XX:SharedArchiveFile=", "-XX:AOTCache=", "-Xshare:", "-Xlog:")


def words() -> list[str]:
    """How a quick driver of ours is started, without what it runs: the program, and flags that make an archive."""
    found = command(find_java(), {"spark.driver.memory": "256m"}, quick=True)
    found = found[: found.index("org.apache.spark.deploy.SparkSubmit")]
    making = ("-XX:ArchiveClassesAtExit=", "-XX:AOTMode=", "-XX:AOTConfiguration=", "-Dlog4j2.")
    return [word for word in found if not word.startswith(making)]


def options() -> str:
    """For JDK_JAVA_OPTIONS, or the extra options of executors. Nothing where there is no archive."""
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return " ".join([*quick, *(word for word in words() if word.startswith(_KEPT))])


def class_path() -> str:
    """The jars of the archive, in their order."""
    found = words()
    return found[found.index("-cp") + 1]
