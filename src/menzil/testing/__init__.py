"""For the tests of programs that use menzil: fixtures by a pytest plugin, and these functions. Everything is real.

A database of its own for each test, the real worker in this process, a real HTTP receiver. The plugin is pytest_menzil;
menzil.testing.aio has the same functions for async tests.
"""

from menzil.testing.asserting import all_sent, assert_sent, refute_sent
from menzil.testing.draining import Drained, EndlessError, HandlerError, drain
from menzil.testing.firing import fire
from menzil.testing.performing import perform
from menzil.testing.receiver import Received, Receiver
from menzil.testing.sent import Sent

__all__ = [
    "Drained",
    "EndlessError",
    "HandlerError",
    "Received",
    "Receiver",
    "Sent",
    "all_sent",
    "assert_sent",
    "drain",
    "fire",
    "perform",
    "refute_sent",
]
