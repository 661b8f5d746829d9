"""`menzil console` as operators run it: a process of its own, and viewers that behave as browsers do."""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from bench import usage
from bench.before import ROOT

_PLACE = re.compile(r"http://127\.0\.0\.1:(\d+)/")


class Seat:
    """A running console. `nice`: it yields the processor to the others, as if it ran on a machine of its own."""

    def __init__(self, dsn: str, *, nice: int = 0) -> None:
        self._log = tempfile.TemporaryFile("w+b")  # noqa: SIM115  # closed by __exit__
        command = [sys.executable, "-m", "menzil", "console", "--dsn", dsn, "--port", "0"]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=self._log, stderr=self._log, preexec_fn=lambda: os.nice(nice)
        )
        self.port = 0

    def cpu(self) -> float:
        """Processor seconds so far."""
        return usage.cpu_of(self._process.pid)

    def said(self) -> str:
        """What it wrote so far."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")

    def __enter__(self) -> Self:
        ends = time.monotonic() + 60
        while (found := _PLACE.search(self.said())) is None:
            if self._process.poll() is not None or time.monotonic() > ends:
                self._stop()
                raise RuntimeError(f"The console does not start:\n{self.said()[-2000:]}")
            time.sleep(0.05)
        self.port = int(found[1])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        self._log.close()

    def _stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


@dataclass(frozen=True)
class Page:
    """What came back."""

    url: str
    status: int
    seconds: float
    text: str
    tag: str = ""


def get(port: int, url: str, tag: str = "", *, live: bool = False) -> Page:
    """One request; `tag` is that of the fragment before."""
    headers = {"X-Menzil-Live": "1"} if live else {}
    if tag:
        headers["If-None-Match"] = tag
    began = time.monotonic()
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        conn.request("GET", url, headers=headers)
        answer = conn.getresponse()
        text = answer.read().decode(errors="replace")
        return Page(url, answer.status, time.monotonic() - began, text, answer.headers.get("ETag", ""))
    except OSError as error:
        return Page(url, 0, time.monotonic() - began, str(error))
    finally:
        conn.close()


class Viewers:
    """So many people, each with one page open that asks for itself again every few seconds; now and then one reloads.

    `open` lets them go on, `close` lets them stop; between the two they have their tabs hidden. They yield the
    processor to all others, as browsers on other machines would; `cpu` is what they took all the same.
    """

    def __init__(self, port: int, pages: Sequence[tuple[str, int]], count: int) -> None:
        self._port, self._pages = port, pages
        self._looking, self._ended = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self.seen: list[Page] = []
        self.cpu = 0.0
        self._threads = [threading.Thread(target=self._view, args=(number,), daemon=True) for number in range(count)]
        for thread in self._threads:
            thread.start()

    def open(self) -> None:
        self._looking.set()

    def close(self) -> None:
        self._looking.clear()

    def end(self) -> None:
        self._ended.set()
        self._looking.set()
        for thread in self._threads:
            thread.join(30)

    def _view(self, number: int) -> None:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)  # of this thread alone
        dice, spent = random.Random(number), 0.0
        url, every = self._pages[number % len(self._pages)]
        tag, fragments = "", 0
        while not self._ended.is_set():
            self._looking.wait()
            if self._ended.wait(dice.uniform(0.5, 1.5) * every if fragments else dice.uniform(0, 1)):
                return
            if not self._looking.is_set():
                continue
            live = fragments % 5 != 0
            page = get(self._port, url, tag if live else "", live=live)
            tag, fragments = page.tag or tag, fragments + 1
            with self._lock:
                self.seen.append(page)
                self.cpu, spent = self.cpu + time.thread_time() - spent, time.thread_time()
