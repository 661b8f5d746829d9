"""Spark for the last scenes: one session for all of them, started while the show waits for something else."""

from __future__ import annotations

import shutil
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where the lake and the page stay when the show is over, below the directory it was started in.
PLACE = Path("build") / "demo"


class Workshop:
    """A session, and a directory that outlives the show."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._session: Future[SparkSession] | None = None
        self._scratch: str | None = None
        self._place: Path | None = None
        #: The report, once there is one.
        self.page: Path | None = None

    def warm(self) -> None:
        """Begin to start Spark, which takes seconds, beside the scenes before it."""
        if self._session is None:
            self._scratch = tempfile.mkdtemp(prefix="menzil-demo-spark-")
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="menzil demo spark")
            self._session = self._pool.submit(self._start, self._scratch)

    def session(self) -> SparkSession:
        """The session, or a MenzilError: without the extra there is no Spark, and perhaps no Java."""
        self.warm()
        assert self._session is not None
        return self._session.result()

    @property
    def place(self) -> Path:
        """Empty at first: what the show before this one left there is gone."""
        if self._place is None:
            shutil.rmtree(PLACE, ignore_errors=True)
            PLACE.mkdir(parents=True, exist_ok=True)
            self._place = PLACE
        return self._place

    @staticmethod
    def _start(scratch: str) -> SparkSession:
        from menzil.spark.session import get_session

        conf = {
            "spark.local.dir": scratch,
            "spark.sql.warehouse.dir": f"{scratch}/warehouse",
            # A few thousand rows: interpreting a plan takes less time than to compile it, or to think it over.
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.adaptive.enabled": "false",
        }
        spark = get_session("menzil demo", "local[2]", quick=True, conf=conf)
        spark.range(1).count()  # the first job pays for all that follow
        return spark

    def close(self) -> None:
        """End Spark, if it was started, and remove its scratch."""
        if self._session is None or self._pool is None:
            return
        if self._session.exception() is None:
            from menzil.spark.session.launch import end

            with suppress(Exception):  # its Java may be gone, or in the middle of what was interrupted
                self._session.result().stop()
            end()
        self._pool.shutdown()
        shutil.rmtree(self._scratch or "", ignore_errors=True)
