"""One call gives a Spark session that works: Java found, defaults set, logs quiet, a fast start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from menzil.model.errors import MenzilError
from menzil.spark.extra import must_be_installed
from menzil.spark.session.defaults import set_environment, settings
from menzil.spark.session.errors import explain
from menzil.spark.session.launch import ensure_jvm
from menzil.spark.session.master import must_be_there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["explain", "get_session"]


def get_session(
    app: str = "menzil",
    master: str | None = None,
    *,
    quick: bool = False,
    conf: dict[str, str] | None = None,
) -> SparkSession:
    """The session of this process: the active one as it is, or a new one. Driver.

    `master` is `local[*]` unless given; `quick` is for short work on little data; `conf` has the last word.
    """
    must_be_installed()
    active = _active()
    if active is not None:
        return active
    where = master or (conf or {}).get("spark.master") or "local[*]"
    chosen = settings(where, quick=quick) | {"spark.master": where, "spark.app.name": app} | (conf or {})
    must_be_there(where)
    set_environment(where)
    try:
        ensure_jvm(chosen, quick=quick)
        from pyspark.sql import SparkSession

        builder = SparkSession.builder
        for name, value in chosen.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except MenzilError:
        raise
    except Exception as error:
        raise explain(error) from error


def _active() -> SparkSession | None:
    """The session that is there already; none while nobody has read PySpark, which takes a second."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    return active if active is not None and active.sparkContext._jsc is not None else None
