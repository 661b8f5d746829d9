"""Errors of Spark leave a job as one sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from menzil.spark.session.errors import explain

P = ParamSpec("P")
T = TypeVar("T")

# Where PySpark writes the whole Java trace of a wrong query before it raises it. It must be of Spark's own class.
_chatter = PySparkLogger.getLogger("SQLQueryContextLogger")


def plainly(job: Callable[P, T]) -> Callable[P, T]:
    """Let a job say what went wrong without two pages of Java. Other errors, which are bugs, keep their traceback."""

    @wraps(job)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        before, _chatter.disabled = _chatter.disabled, True
        try:
            return job(*args, **kwargs)
        except (PySparkException, Py4JError) as error:
            raise explain(error) from error
        finally:
            _chatter.disabled = before

    return run
