"""Errors of Spark, and of the files of a lake, leave a job as one sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from menzil.spark.lake.errors import in_words
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


def of_lake(job: Callable[P, T]) -> Callable[P, T]:
    """The same for a job that reads or writes a lake: a full disk, a missing right and a store that does not answer."""
    plain = plainly(job)

    @wraps(job)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with in_words():
            try:
                return plain(*args, **kwargs)
            except ConnectionError as error:  # of Spark's Java process
                raise explain(error) from error

    return run
