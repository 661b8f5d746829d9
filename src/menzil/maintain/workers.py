"""Forgets workers that are long gone."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

WORKERS = Janitor("workers", 600, sweeping.workers)
