"""Spark: sessions that work, the data source, and the jobs of the pipeline; and the lake, in `menzil.spark.lake`.

What runs Spark needs `pip install 'menzil[spark]'`. Reading and registering the lake needs no Spark: there
`pip install 'menzil[lake]'` is enough.
"""

from __future__ import annotations

from menzil.spark.extra import part_must_be_installed

# First: where no extra is installed, the modules below are not there.
part_must_be_installed()

from menzil.spark.read import read, relations  # noqa: E402
from menzil.spark.session import explain, get_session  # noqa: E402

__all__ = ["explain", "get_session", "read", "relations"]
