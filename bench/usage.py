"""Processor time and memory of other processes: the server with its backends, workers with their children."""

from __future__ import annotations

from contextlib import suppress

import psutil
import psycopg


def server_process(conn: psycopg.Connection[object]) -> psutil.Process | None:
    """The process all backends of the server are children of; None where the server is on another machine."""
    if conn.info.host.startswith("/") or conn.info.hostaddr in ("127.0.0.1", "::1"):
        with suppress(psutil.Error):
            return psutil.Process(conn.info.backend_pid).parent()
    return None


def cpu(process: psutil.Process | None, *, without: int | None = None) -> float:
    """Seconds used so far by a process and its children, those that ended included.

    `without` is a child that is measured by itself: a JVM goes on compiling long after its work was timed.
    """
    if process is None or process.pid == without:
        return 0.0
    spent = 0.0
    with suppress(psutil.Error):
        spent += sum(process.cpu_times()[:4])  # its own, and that of children it waited for
        for child in process.children():
            spent += cpu(child, without=without)
    return spent


def cpu_of(pid: int) -> float:
    """The same by number."""
    try:
        return cpu(psutil.Process(pid))
    except psutil.Error:
        return 0.0


def megabytes(pid: int) -> float:
    """Resident memory of one process."""
    rss: int = psutil.Process(pid).memory_info().rss
    return rss / 1e6
