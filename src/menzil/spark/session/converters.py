"""PySpark reads pandas, for half a second and more, to learn whether a list that goes to Java is an array of NumPy.

No value can be one while NumPy is not imported. The names are PySpark's own, whose version is pinned.
"""

from __future__ import annotations

import sys
from typing import Any


def spare_pandas() -> None:
    """Let PySpark ask what it asks of every argument without reading anything. Driver, once per process."""
    from pyspark.sql import types

    for name, asked in (("NumpyScalarConverter", _is_scalar), ("NumpyArrayConverter", _is_row)):
        converter = getattr(types, name, None)
        if converter is not None:
            converter.can_convert = asked


def _is_scalar(_: object, value: Any) -> bool:
    kind = getattr(sys.modules.get("numpy"), "generic", None)  # not there yet while another thread reads NumPy
    return kind is not None and isinstance(value, kind)


def _is_row(_: object, value: Any) -> bool:
    kind = getattr(sys.modules.get("numpy"), "ndarray", None)
    return kind is not None and isinstance(value, kind) and value.ndim == 1
