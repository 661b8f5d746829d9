"""One call gives a Spark session that works: Java found, defaults set, logs quiet, a fast start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from menzil.model.errors import MenzilError, UsageError
from menzil.spark.extra import must_be_installed
from menzil.spark.session.defaults import set_environment, set_python, settings
from menzil.spark.session.errors import explain
from menzil.spark.session.home import must_fit
from menzil.spark.session.launch import ensure_jvm, has_jvm
from menzil.spark.session.master import asked_for, elsewhere, must_be_there
from menzil.spark.session.outside import configured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["explain", "get_session"]


def get_session(
    app: str | None = None,
    master: str | None = None,
    *,
    quick: bool = False,
    conf: dict[str, str] | None = None,
) -> SparkSession:
    """The session of this process: the active one as it is, or a new one. Driver.

    The master is the first of these that is given: `master`, `spark.master` in `conf`, spark-submit or Spark's
    configuration, the variable MASTER; else `local[*]`. What spark-submit or Spark's configuration sets stays as it is;
    `conf` has the last word. `quick` is for short work on little data.
    """
    must_be_installed()
    given = dict(conf or {})
    wanted = asked_for(master, given)
    active = _active()
    if active is not None:
        _must_run_on(wanted, active.sparkContext.master)
        return active
    if wanted is not None:
        must_be_there(wanted)
    set_python()
    try:
        if not has_jvm():
            must_fit()
        theirs = configured(given, wanted)
        where = wanted or theirs.get("spark.master")
        if where is None:  # Spark has checked the one that it was started with
            where = elsewhere()
            must_be_there(where)
        ours = settings(where, theirs, quick=quick) | {"spark.master": where} | _name(app, theirs)
        chosen = ours | given
        set_environment(where)
        ensure_jvm(chosen, quick=quick)
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        if SparkContext._active_spark_context is not None:  # made by the program, without a session
            _must_run_on(wanted, SparkContext._active_spark_context.master)
        builder = SparkSession.builder
        for name, value in chosen.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()
    except MenzilError:
        raise
    except Exception as error:
        raise explain(error) from error


def _active() -> SparkSession | None:
    """The session that is there already; None while PySpark is not imported, which would take a second."""
    if "pyspark.sql" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    return active if active is not None and active.sparkContext._jsc is not None else None


def _must_run_on(wanted: str | None, running: str | None) -> None:
    """A process has one SparkContext: another master than that of the running one cannot be had."""
    if wanted is not None and wanted != running:
        raise UsageError(
            f"Spark is already running in this process with the master {running}, not {wanted}.",
            hint="stop that session first, or do not name a master",
        )


def _name(app: str | None, theirs: dict[str, str]) -> dict[str, str]:
    # Spark calls a program without a name after the shell that it was not started in.
    if app is None and theirs.get("spark.app.name", "pyspark-shell") != "pyspark-shell":
        return {}
    return {"spark.app.name": app or "menzil"}
