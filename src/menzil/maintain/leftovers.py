"""Moves messages to the archive that ended while it could not take them."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

LEFTOVERS = Janitor("leftovers", 60, sweeping.leftovers)
