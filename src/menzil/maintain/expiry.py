"""Ends messages past their expiry that no dequeue has met."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import upkeep

EXPIRY = Janitor("expiry", 5, upkeep.mark_expired)
