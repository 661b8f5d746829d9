"""Forgets dead letters older than dlq_retention_days."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

DEAD_LETTERS = Janitor("dead letters", 600, sweeping.dead_letters)
