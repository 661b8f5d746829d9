"""A refusal reaches a person as its sentence, not below the traceback of a Python process of Spark.

Spark runs the source in processes of its own, and sends the text of an exception to the driver. A variable of the
environment leaves the traceback out. It is set only for an error of menzil, in the process that is about to report it:
that process ends with the report, so the tracebacks of other errors and of other people's functions stay.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

from menzil.model.errors import MenzilError
from menzil.spark.frozen import freeze_modules

Kind = TypeVar("Kind", bound=type)
HIDE = "SPARK_HIDE_TRACEBACK"


def sentence_first(kind: Kind) -> Kind:
    """Class decorator: an error of menzil that leaves a method of this class is reported without its traceback."""
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            setattr(kind, name, _telling_rows(method) if inspect.isgeneratorfunction(method) else _telling(method))
    return kind


def _telling(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        freeze_modules()
        try:
            return method(*args, **kwargs)
        except MenzilError:
            _hide()
            raise

    return call


def _telling_rows(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Iterator[Any]:
        freeze_modules()
        try:
            yield from method(*args, **kwargs)
        except MenzilError:
            _hide()
            raise

    return call


def _hide() -> None:
    if any(name.startswith(("pyspark.worker", "pyspark.daemon", "pyspark.sql.worker")) for name in sys.modules):
        os.environ[HIDE] = "1"
