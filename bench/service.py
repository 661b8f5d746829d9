"""`menzil worker` as users run it: a process of its own that is started, watched and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from types import TracebackType
from typing import Self

from bench import usage
from bench.before import ROOT, Before


class Service:
    """A running `menzil worker`; entered when every process of it has said that it started."""

    def __init__(
        self,
        dsn: str,
        *options: str,
        app: str | None = None,
        processes: int = 1,
        environment: dict[str, str] | None = None,
        before: Before | None = None,  # the worker of 0.1.0
    ) -> None:
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115  # closed by __exit__
        several = ["--processes", str(processes)] if processes > 1 else []
        command = [sys.executable, "-m", "menzil", "worker", *([app] if app else []), "--dsn", dsn, *several, *options]
        variables = os.environ | (before.environment if before else {}) | (environment or {})
        place = before.tree if before else ROOT
        self._process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=self._log, env=variables)
        self._processes = processes
        self.pid = self._process.pid

    def said(self) -> str:
        """What it wrote so far."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def cpu(self) -> float:
        """Processor seconds so far, all of its processes together."""
        return usage.cpu_of(self.pid)

    def wait(self, words: str, times: int = 1, patience: float = 60.0) -> None:
        """Until it has said these words so many times."""
        ends = time.monotonic() + patience
        while self.said().count(words) < times:
            if self._process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"The worker does not say {words!r}:\n{self.said()[-2000:]}")
            time.sleep(0.02)

    def stop(self) -> None:
        """SIGTERM, as a supervisor does."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        try:
            self.wait(" started worker=", self._processes)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._log.close()
