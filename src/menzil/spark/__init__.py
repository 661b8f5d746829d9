"""Spark: sessions that work, the data source, and the jobs of the pipeline. Needs `pip install 'menzil[spark]'`."""

from __future__ import annotations

from menzil.spark.extra import must_be_installed

# First: where the extra is not installed, the modules below may not be there.
must_be_installed()

from menzil.spark.read import read, relations  # noqa: E402
from menzil.spark.session import explain, get_session  # noqa: E402

__all__ = ["explain", "get_session", "read", "relations"]
