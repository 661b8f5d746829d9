"""Spark looks for modules named `pyspark_…` and finds `format("menzil")` here; everything else is in `menzil.spark`."""

from menzil.spark.source.datasource import MenzilDataSource

DefaultSource = MenzilDataSource

__all__ = ["DefaultSource"]
