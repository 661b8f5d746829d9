"""The supervisor: parent of one PostgreSQL, alive as long as a process uses it. Runs as a process of its own.

It makes the cluster when there is none, starts the server, starts it again when it dies, and stops it when the last
user is gone. It hears of users through the lock file `holders` alone: every user shares that lock, the kernel lets go
of it when the user ends, however it ends, so a process that gets it exclusively knows that no user is left.

Standard library alone: it is started without site-packages, and a warm start waits for its imports.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from menzil.embedded.cluster import StartError, prepare
from menzil.embedded.home import Home, write
from menzil.embedded.locks import open_lock, release, try_exclusive
from menzil.embedded.plan import Plan
from menzil.embedded.postmaster import Postmaster, adopt, complaint, launch

TICK = 0.2  # how often it looks for users; a dead server wakes it at once
TRIES = 4  # starts in a row that may fail before it gives up
STEADY = 5.0  # a server that lived this long did start


class Supervisor:
    """Keeps one server running; see the module."""

    def __init__(self, home: Home, plan: Plan) -> None:
        self.home = home
        self.plan = plan
        self.holders = open_lock(home.holders)
        self.told_to_stop = False
        self.postmaster: Postmaster | None = None
        self.log_position = 0
        self.started_at = 0.0
        self.failures = 0
        self.wakeup = _listen_for_signals(self._on_signal)

    def run(self) -> None:
        self.postmaster = adopt(self.home, self.plan)
        if self.postmaster is None:
            prepare(self.home, self.plan)
        while not self._is_over():
            if self.postmaster is None or not self.postmaster.is_alive():
                self._start()
            self._sleep(TICK)
        self._stop()

    def _start(self) -> None:
        """Start the server, and wait a little longer after each start that came to nothing."""
        if self.postmaster is not None:
            lived = time.monotonic() - self.started_at
            self.failures = self.failures + 1 if lived < STEADY else 1
            now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
            print(f"{now} UTC postmaster {self.postmaster.pid} ended", file=sys.stderr, flush=True)
            if self.failures > TRIES:
                said = complaint(self.home, self.log_position)
                raise StartError(f"PostgreSQL does not stay up: {said}.", f"its log is {self.home.log}")
            if self.failures > 1:
                self._sleep(0.1 * 2**self.failures)
        with contextlib.suppress(OSError):
            self.log_position = self.home.log.stat().st_size
        self.started_at = time.monotonic()
        self.postmaster = launch(self.home, self.plan)

    def _is_over(self) -> bool:
        if self.told_to_stop or self.home.stop.exists() or not self._at_home():
            return True
        if not try_exclusive(self.holders):
            return False
        # No process uses the server. Keeping the lock makes newcomers wait until it is down; they then start it afresh.
        if self.home.pinned.exists():
            release(self.holders)
            return False
        return True

    def _at_home(self) -> bool:
        """Whether our directory is still there: deleted below us, it needs no server and must not come back."""
        try:
            there = self.home.holders.stat()
        except OSError:
            return False
        ours = os.fstat(self.holders)
        return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)

    def _stop(self) -> None:
        if self.postmaster is not None:
            self.postmaster.stop(signal.SIGINT if self._at_home() else signal.SIGQUIT)
        if self._at_home():
            self.home.stop.unlink(missing_ok=True)
        if self.home.socket_dir != self.home.data:
            with contextlib.suppress(OSError):
                self.home.socket_dir.rmdir()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.told_to_stop = self.told_to_stop or number == signal.SIGTERM

    def _sleep(self, seconds: float) -> None:
        """Wait, but no longer than until a child ends or a signal arrives."""
        if select.select([self.wakeup], [], [], seconds)[0]:
            with contextlib.suppress(BlockingIOError):
                os.read(self.wakeup, 4096)


def _listen_for_signals(handler: signal._HANDLER) -> int:
    """Have every signal of interest make a pipe readable. Handlers, unlike SIG_IGN, are not inherited by the server."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # undo what the starting thread had blocked
    return readable


def main(path: str, lock: int) -> None:
    """Supervise the server of this home; `lock` is its supervisor lock, inherited from the process that started us."""
    os.set_inheritable(lock, False)
    os.umask(0o077)
    home = Home(Path(path))
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    try:
        plan = Plan.load(home)
        if plan is None:
            raise StartError(f"{home.plan} is missing or was written by another version.", "start the server again")
        Supervisor(home, plan).run()
    except StartError as error:
        _report(home, error.message, error.hint)
    except Exception as error:
        traceback.print_exc()
        _report(home, f"The supervisor of PostgreSQL failed: {error}.", f"its log is {home.supervisor_log}")


def _report(home: Home, message: str, hint: str) -> None:
    """Leave a note for processes that wait; its time tells them whether it is about their own wait."""
    write(home.failure, json.dumps({"at": time.time(), "message": message, "hint": hint}))
