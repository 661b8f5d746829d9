"""Fires schedules whose time has come."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

SCHEDULES = Janitor("schedules", 5, sweeping.schedules, limit=100)
