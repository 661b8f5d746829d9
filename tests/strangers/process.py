"""A real `menzil worker` among the crowd, in a process of its own: what its handlers say is noted in the diary."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from psycopg.conninfo import make_conninfo

from tests.strangers.diary import Diary

ROOT = Path(__file__).resolve().parents[2]
#: The channels of its handlers, and the name of its sessions.
HANDLED = ("handled", "booked")
NAME = "real worker"


class WorkerProcess:
    """Starts it, listens to it, and ends it."""

    def __init__(self, dsn: str, diary: Diary) -> None:
        self._dsn = make_conninfo(dsn, application_name=NAME)
        self._diary = diary
        self._process: subprocess.Popen[str] | None = None
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def start(self) -> None:
        command = [sys.executable, "-m", "menzil", "worker", "tests.strangers.app:app", "--dsn", self._dsn]
        command += ["--no-endpoints", "--lease", "30", "--grace", "2"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._listener.start()

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._listener.join(60)

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._diary.note("work", line.strip())
