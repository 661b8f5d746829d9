"""DEQUEUE: the worker, its loop, leases, heartbeats, wake-up, handlers, and how it stops."""

from menzil.worker.app import Worker
from menzil.worker.inbox import inbox
from menzil.worker.tally import Tally

__all__ = ["Tally", "Worker", "inbox"]
