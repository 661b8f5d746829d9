"""Forgets idempotency keys whose retention is over."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

USED_KEYS = Janitor("used keys", 60, sweeping.used_keys, limit=10_000)
