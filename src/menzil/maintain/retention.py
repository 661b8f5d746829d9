"""Drops months of the archive that are older than archive_retention_months."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import sweeping

RETENTION = Janitor("retention", 3600, lambda _: sweeping.old_archive(), rounds=1)
