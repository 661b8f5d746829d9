"""Forgets lines of the event log older than event_log_retention_days."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

EVENT_LOG = Janitor("event log", 600, sweeping.event_log, limit=10_000)
