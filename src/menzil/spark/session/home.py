"""SPARK_HOME: PySpark launches what it names, and finds out late and in many lines when that does not fit."""

from __future__ import annotations

import os
import re
from pathlib import Path

from menzil.model.errors import UsageError

#: Vendors add words of their own behind the version.
_CORE = re.compile(r"spark-core_[\d.]+-(\d+\.\d+)[\w.-]*\.jar")
_MINOR = re.compile(r"\d+\.\d+")


def must_fit() -> None:
    """Refuse a SPARK_HOME without a Spark, or with another one than PySpark is made for. Driver, before Java starts."""
    home = os.environ.get("SPARK_HOME")
    if not home or "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit has started its Java already
        return
    if not Path(home, "bin", "spark-submit").is_file():
        raise UsageError(f"SPARK_HOME is {home}, and there is no Spark.", hint="unset it: PySpark brings one along")
    there = {found[1] for jar in Path(home, "jars").glob("spark-core_*.jar") if (found := _CORE.fullmatch(jar.name))}
    mine = _ours()
    if mine is not None and there and mine not in there:
        version = min(there)
        raise UsageError(
            f"SPARK_HOME is {home}, a Spark {version}, and PySpark here is {mine}.",
            hint=f"unset it: PySpark brings a Spark along; or install pyspark=={version}.*",
        )


def _ours() -> str | None:
    """The version of the PySpark that is imported, without its last number; pip may have another one beside it."""
    import pyspark

    found = _MINOR.match(pyspark.__version__)
    return None if found is None else found[0]
