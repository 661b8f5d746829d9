"""One Spark session for the whole test process: small, single-threaded garbage collection, quick to start."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from menzil.embedded import Embedded
from tests.conftest import database
from tests.spark.lake_history import fill
from tests.spark.warm import there

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Plans that are interpreted as they are.
SMALL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session", autouse=True)
def _warm(server: Embedded, _installed: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Classes that every JVM from here on maps, made once by whichever test process comes first."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    with (shared / "warm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not there():
            with database(server, "warm", _installed) as dsn:
                fill(dsn, 1, 20)
                command = [sys.executable, "-m", "tests.spark.warm", str(tmp_path_factory.mktemp("warm"))]
                subprocess.run(command, env=os.environ | {"MENZIL_DSN": dsn}, timeout=300, check=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """`local[2,3]`: two tasks at a time, and a task that fails is tried again as on a cluster."""
    from menzil.spark.session import get_session

    session = get_session("tests", "local[2,3]", quick=True, conf={"spark.driver.memory": "1g"})
    yield session
    session.stop()


@pytest.fixture(scope="module")
def small(spark: SparkSession) -> Iterator[None]:
    """For modules with large plans over little data: compiling those would take longer than running them."""
    before = {name: spark.conf.get(name, None) for name in SMALL}
    for name, value in SMALL.items():
        spark.conf.set(name, value)
    yield
    for name, old in before.items():
        if old is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, old)


@pytest.fixture
def work(db: str) -> str:
    """A database with a channel named work."""
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('work')")
    return db
