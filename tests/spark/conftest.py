"""One Spark session for the whole test process: small, single-threaded garbage collection, quick to start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """`local[2,3]`: two tasks at a time, and a task that fails is tried again as on a cluster."""
    from menzil.spark.session import get_session

    session = get_session("tests", "local[2,3]", quick=True, conf={"spark.driver.memory": "1g"})
    yield session
    session.stop()
