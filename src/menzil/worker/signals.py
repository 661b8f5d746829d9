"""The signals that stop a worker in order: it finishes what it can and hands the rest back."""

from __future__ import annotations

import signal


def stop_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM and SIGINT; SIGHUP too, which a terminal sends when it closes, unless nohup or the program took it.

    A second SIGTERM or SIGINT forces. A second SIGHUP does not: a shell and the terminal may both send one.
    """
    closes = (signal.SIGHUP,) if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL else ()
    return (signal.SIGTERM, signal.SIGINT, *closes)
