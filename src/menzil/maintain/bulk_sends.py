"""Gives up bulk sends whose drivers died, and takes their staging tables away."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

BULK_SENDS = Janitor("bulk sends", 600, sweeping.bulk_sends, limit=100)
