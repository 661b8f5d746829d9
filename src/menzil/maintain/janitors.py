"""Every janitor there is. To add one, write its file and give it a line here."""

from __future__ import annotations

from menzil.maintain.attempts import ATTEMPTS
from menzil.maintain.bulk_sends import BULK_SENDS
from menzil.maintain.dead_letters import DEAD_LETTERS
from menzil.maintain.event_log import EVENT_LOG
from menzil.maintain.expiry import EXPIRY
from menzil.maintain.inbox import INBOX
from menzil.maintain.janitor import Janitor
from menzil.maintain.leftovers import LEFTOVERS
from menzil.maintain.partitions import PARTITIONS
from menzil.maintain.recovery import RECOVERY
from menzil.maintain.retention import RETENTION
from menzil.maintain.schedules import SCHEDULES
from menzil.maintain.used_keys import USED_KEYS
from menzil.maintain.workers import WORKERS

#: In the order of a first round: what makes messages move comes first.
JANITORS: tuple[Janitor, ...] = (
    SCHEDULES,
    RECOVERY,
    EXPIRY,
    PARTITIONS,
    LEFTOVERS,
    USED_KEYS,
    INBOX,
    BULK_SENDS,
    DEAD_LETTERS,
    RETENTION,
    EVENT_LOG,
    ATTEMPTS,
    WORKERS,
)
