"""Takes back the leases of workers that died, also of channels that nobody dequeues from any more."""

from __future__ import annotations

from menzil.maintain.janitor import Janitor
from menzil.ops import upkeep

RECOVERY = Janitor("recovery", 5, upkeep.recover_stale)
