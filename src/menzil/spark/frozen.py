"""Spark's Python processes: the garbage collector leaves loaded modules alone.

Spark calls gc.collect() after every task and every question of its planner. With PySpark, pandas and Arrow loaded that
takes 50 ms. Modules stay loaded until the process ends, so the collector need not visit them.
"""

from __future__ import annotations

import gc
import itertools
import sys

#: The first tasks load modules; a process that froze objects at every task would keep their cycles forever.
TIMES = 8
_calls = itertools.count()


def freeze_modules() -> None:
    """Freeze all objects of this process. Planner and tasks, at their beginning; in other processes it does nothing."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    if main is not None and main.name == "pyspark.daemon" and next(_calls) < TIMES:
        gc.freeze()
