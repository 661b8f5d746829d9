"""A driver that can be killed without the price of another JVM: a fork of this process that speaks to the same one.

What it leaves behind in the JVM goes on for a while, as the tasks of a killed driver do on a cluster.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable

from pyspark.sql import SparkSession


class Driver:
    """A forked process that does some work, and is killed at the end of a with block."""

    fate: int

    def __init__(self, spark: SparkSession, work: Callable[[], object]) -> None:
        self.pid = os.fork()
        if self.pid == 0:
            try:
                gc.freeze()  # what the parent holds in the JVM is not ours to release
                _new_connections(spark)
                work()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        self._end = os.pidfd_open(self.pid)

    def ends_within(self, seconds: float) -> bool:
        """Wait for it, but not longer."""
        return bool(select.select([self._end], [], [], seconds)[0])

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill it, if it still runs."""
        os.kill(self.pid, signal.SIGKILL)  # not waited for yet, so the number is still its own
        _, status = os.waitpid(self.pid, 0)
        os.close(self._end)
        self.fate = os.waitstatus_to_exitcode(status)  # as in subprocess


def _new_connections(spark: SparkSession) -> None:
    """Leave the parent its sockets: two who speak on one get each other's answers."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    client = gateway._gateway_client
    client._of_the_parent = (client.deque, client.thread_connection)  # kept, so that nothing closes them
    client.deque, client.thread_connection = deque(), threading.local()
