"""Several processes of one command: started together, watched, and stopped one after the other in order."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType

from menzil.cli.lifeline import LISTENER
from menzil.cli.show import say
from menzil.worker.family import LIFELINE

#: Seconds between two looks at the children.
LOOK = 0.1
#: Seconds that a child may take to stop before it is killed: a worker finishes for 10 seconds and hands back for some.
PATIENCE = 30.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Crew:
    """The children, by name, in the order in which they stop."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._signals = 0
        # The end the children read from closes when this process ends, however it ends.
        self._reading, self._writing = os.pipe()

    def __enter__(self) -> Crew:
        self._before = {number: signal.signal(number, self._signalled) for number in _SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.stop()
        finally:
            for number, handler in self._before.items():
                signal.signal(number, handler)
            os.close(self._reading)
            os.close(self._writing)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1

    @property
    def told_to_stop(self) -> bool:
        """Whether the user pressed Ctrl-C, or the machine stops."""
        return self._signals > 0

    def start(self, name: str, words: Sequence[str], listener: socket.socket | None = None) -> None:
        """Start `menzil WORDS`, in a session of its own: what is typed in the terminal reaches this process alone.

        A `listener` is handed over: the port is taken from the beginning, and no other program answers there.
        """
        handed = {} if listener is None else {LISTENER: str(listener.fileno())}
        self._children[name] = subprocess.Popen(
            [sys.executable, "-m", "menzil", *words],
            env={**self._environ, LIFELINE: str(self._reading), **handed},
            pass_fds=(self._reading, *([] if listener is None else [listener.fileno()])),
            start_new_session=True,
        )

    def ended(self) -> tuple[str, int] | None:
        """The first child that has ended, and its exit code."""
        for name, child in self._children.items():
            code = child.poll()
            if code is not None:
                return name, code
        return None

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> bool:
        """Wait for this to be true; False when a child ended, the user stopped us, or it took too long."""
        deadline = time.monotonic() + seconds
        while not self.told_to_stop and self.ended() is None and time.monotonic() < deadline:
            if ready():
                return True
            time.sleep(LOOK)
        return False

    def watch(self) -> int:
        """Wait until the user stops us, which is exit code 0, or until a child ends, which stops all."""
        while not self.told_to_stop:
            gone = self.ended()
            if gone is not None:
                name, code = gone
                say(f"The {name} ended with exit code {code}, so the rest stops too.")
                return code if code > 0 else 1
            time.sleep(LOOK)
        return 0

    def stop(self) -> None:
        """Stop the children, each after the one before it has ended. A second signal hurries the one that stops."""
        for name, child in self._children.items():
            heard = self._signals
            if child.poll() is None:
                child.terminate()
            deadline = time.monotonic() + PATIENCE
            while child.poll() is None:
                if self._signals > heard:
                    heard = self._signals
                    child.terminate()
                if time.monotonic() > deadline:
                    say(f"The {name} did not stop within {PATIENCE:.0f} seconds and is killed.")
                    child.kill()
                    child.wait()
                time.sleep(LOOK)
        self._children.clear()
