"""Forgets what consumers need not remember any longer."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

INBOX = Janitor("inbox", 60, sweeping.inbox, limit=10_000)
