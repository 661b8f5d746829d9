"""Makes the months of the archive before they are needed."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import upkeep

PARTITIONS = Janitor("partitions", 3600, lambda _: upkeep.maintain_archive_partitions(), rounds=1)
