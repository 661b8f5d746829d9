"""What a parent process hands to its child: a pipe that tells when the parent is gone, and a socket that listens."""

from __future__ import annotations

import os
import signal
import socket
import threading

from menzil.worker.family import LIFELINE

#: The number of the descriptor of a socket that listens already.
LISTENER = "MENZIL_LISTENER_FD"


def listener() -> socket.socket | None:
    """The socket that the parent listens at for this process; None in a process without such a parent."""
    given = os.environ.pop(LISTENER, None)
    return None if given is None else socket.socket(fileno=int(given))


def watch_lifeline() -> None:
    """End as after SIGTERM when the parent ends without a word; nothing happens in a process without such a parent."""
    if LIFELINE not in os.environ:
        return
    pipe = int(os.environ.pop(LIFELINE))

    def wait() -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="menzil-lifeline", daemon=True).start()
