"""Forgets attempts of messages that are gone."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

ATTEMPTS = Janitor("attempts", 600, sweeping.attempts, limit=10_000)
