"""One call gives a Spark session that works: Java found, defaults set, logs quiet, a fast start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from menzil.model.errors import MenzilError
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
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise MenzilError("PySpark is not installed.", hint="run `pip install 'menzil[spark]'`") from error
    active = SparkSession.getActiveSession()
    if active is not None and active.sparkContext._jsc is not None:
        return active
    where = master or (conf or {}).get("spark.master") or "local[*]"
    chosen = settings(where, quick=quick) | {"spark.master": where, "spark.app.name": app} | (conf or {})
    must_be_there(where)
    set_environment(where)
    try:
        ensure_jvm(chosen, quick=quick)
        builder = SparkSession.builder
        for name, value in chosen.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except MenzilError:
        raise
    except Exception as error:
        raise explain(error) from error
