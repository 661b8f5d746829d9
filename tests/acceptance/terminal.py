"""A person at a terminal: a real pseudo terminal, what appears on it, and keys."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from pathlib import Path

from tests.acceptance.crew import until

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?=<>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P_^].*?\x1b\\|[ -/]*[0-~])", re.DOTALL
)


class Terminal:
    """Runs `menzil WORDS` on a terminal of its own; `size` is rows and columns."""

    def __init__(
        self, *words: str, env: dict[str, str], size: tuple[int, int] = (40, 160), cwd: Path | None = None
    ) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "menzil", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm-256color", **env},
            cwd=cwd,
            # The terminal becomes the one that Ctrl-C comes from.
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(0, termios.TIOCSCTTY, 0)),
        )
        os.close(theirs)
        self.raw = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                found = os.read(self._ours, 65536)
            except OSError:  # the last process that had it open is gone
                return
            if not found:
                return
            self.raw += found

    @property
    def text(self) -> str:
        """Everything that was written so far, without the signs that move the cursor and colour."""
        return _ESCAPES.sub("", self.raw.decode("utf-8", "replace"))

    def shows(self, words: str, after: int = 0, seconds: float = 60) -> int:
        """Wait for these words; returns how much was written by then, so that a later wait looks only further on."""

        def look() -> bool:
            assert words in self.text[after:] or self.process.poll() is None, self.text[-3000:]
            return words in self.text[after:]

        until(look, f"{words!r} on the terminal, which shows {self.text[-500:]!r}", seconds)
        return len(self.text)

    def press(self, keys: str) -> int:
        """Type; returns how much was written before."""
        so_far = len(self.text)
        os.write(self._ours, keys.encode())
        return so_far

    def ends(self, seconds: float = 60) -> int:
        """Wait for the end and return the exit code."""
        code = self.process.wait(timeout=seconds)
        self._reader.join(timeout=60)
        return code

    def close(self) -> None:
        """Kill what still runs."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(timeout=60)
        os.close(self._ours)
