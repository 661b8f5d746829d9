"""One Spark session for the whole test process: small, single-threaded garbage collection, quick to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from menzil.ops.choosing import LIBPQ_VARIABLES
from tests.canary.fixtures import planted
from tests.spark import warm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["compiled", "event_log", "planted", "spark", "work"]

#: Plans are interpreted: with little data, compiling a plan takes longer than running it.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


def pytest_collection_finish(session: pytest.Session) -> None:
    """One of the test processes has the classes archived that every JVM maps, while other tests go ahead."""
    first = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    if first and not session.config.option.collectonly and any("tests/spark" in item.nodeid for item in session.items):
        warm.begin()


@pytest.fixture(scope="session", autouse=True)
def _warm() -> None:
    warm.wait()


@pytest.fixture(scope="session")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark writes down what it does: the plans of its queries, the options of its sources, its settings."""
    return tmp_path_factory.mktemp("event-log")


@pytest.fixture(scope="session")
def spark(event_log: Path) -> Iterator[SparkSession]:
    """`local[2,3]`: two tasks at a time, and a task that fails is tried again as on a cluster."""
    from menzil.spark.session import get_session

    conf = {
        "spark.driver.memory": "1g",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log.as_uri(),
        "spark.eventLog.compress": "false",
    }

    with pytest.MonkeyPatch.context() as patch:  # Spark's own processes keep the environment that Java starts with
        for name in ("MENZIL_DSN", *LIBPQ_VARIABLES):
            patch.delenv(name, raising=False)
        patch.setenv("MENZIL_PG_DIR", "/nonexistent")
        session = get_session("tests", "local[2,3]", quick=True, conf=conf)
    for name, value in INTERPRETED.items():  # so that a test can unset them
        session.conf.set(name, value)
    yield session
    session.stop()


@pytest.fixture
def compiled(spark: SparkSession) -> Iterator[None]:
    """Plans are compiled to Java code, Spark's default. One test of each way to read, send and export uses this."""
    for name in INTERPRETED:
        spark.conf.unset(name)
    yield
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)


@pytest.fixture
def work(db: str) -> str:
    """A database with a channel named work."""
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('work')")
    return db
