"""A pipe that tells a child process that its parent is gone, however the parent ended."""

from __future__ import annotations

import os
import signal
import threading

from menzil.worker.family import LIFELINE


def watch_lifeline() -> None:
    """End as after SIGTERM when the parent ends without a word; nothing happens in a process without such a parent."""
    if LIFELINE not in os.environ:
        return
    pipe = int(os.environ.pop(LIFELINE))

    def wait() -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="menzil-lifeline", daemon=True).start()
