"""Spark: sessions that work, the data source, and the jobs of the pipeline. Needs `pip install 'menzil[spark]'`."""

from __future__ import annotations

from menzil.spark.extra import must_be_installed
from menzil.spark.read import read, relations
from menzil.spark.session import explain, get_session

__all__ = ["explain", "get_session", "read", "relations"]

must_be_installed()
