"""What spark-submit, PYSPARK_SUBMIT_ARGS or spark-defaults.conf say about a session, asked from Spark itself."""

from __future__ import annotations

import os

from menzil.model.errors import UsageError
from menzil.spark.session import launch


def configured(conf: dict[str, str], master: str | None) -> dict[str, str]:
    """The settings that were made outside this program; none where Spark is not configured. Driver.

    Only Spark knows how submit's options, its files and its variables add up. Its Java process must run to answer:
    that of spark-submit does, otherwise PySpark starts it here, with the settings that the program gives.
    """
    if os.environ.get("SPARK_REMOTE") and master is None:
        raise UsageError(
            "SPARK_REMOTE names a Spark Connect server, and menzil needs a driver of its own.",
            hint="unset SPARK_REMOTE, or name a master",
        )
    if launch.is_running() or (launch.ordinary(conf) and "PYSPARK_GATEWAY_PORT" not in os.environ):
        return {}
    from pyspark import SparkConf, SparkContext

    if "PYSPARK_GATEWAY_PORT" not in os.environ and SparkContext._gateway is None:
        launch.set_java_home()
    first = SparkConf(loadDefaults=False)
    for name, value in (conf | ({"spark.master": master} if master else {})).items():
        first.set(name, value)
    SparkContext._ensure_initialized(conf=first)
    return dict(SparkConf().getAll())
