"""fire: a cron schedule sends its message now, as if its next time had come."""

from __future__ import annotations

from difflib import get_close_matches
from time import sleep
from typing import Any

import psycopg

from menzil.model.errors import UsageError
from menzil.ops import schedules
from menzil.ops.run import run
from menzil.testing.here import here

# Slots less than a second apart could be one message: seconds, rounded, are in the idempotency key.
_REST = """
select extract(epoch from s.last_slot_at + interval '1 second' - clock_timestamp())::float8
  from menzil.schedules s where s.name = %s and s.last_slot_at is not null"""
_HURRY = (
    "update menzil.schedule set next_at = clock_timestamp() where name = %s and not paused returning last_message_id"
)
_TOLD = "select last_message_id, last_error from menzil.schedules where name = %s"


def fire(name: str, *, dsn: str | None = None) -> int:
    """Let the schedule send its message now; return its id. Other schedules fire only if they are due."""
    with psycopg.connect(here(dsn, "fire"), autocommit=True) as conn:
        rest = conn.execute(_REST, [name]).fetchone()
        sleep(max(0.0, rest[0]) if rest else 0.0)
        before = conn.execute(_HURRY, [name]).fetchone()
        if before is None:
            raise _refusal(conn, name)
        run(conn, schedules.schedule_fire_due(1000))
        (message_id, error) = conn.execute(_TOLD, [name]).fetchone() or (None, "It was dropped meanwhile.")
        if error is not None or message_id == before[0]:
            raise AssertionError(f"The schedule {name!r} fired and sent nothing: {error}")
        return int(message_id)


def _refusal(conn: psycopg.Connection[Any], name: str) -> UsageError:
    names = [found for (found,) in conn.execute("select name from menzil.schedules order by name")]
    if name in names:
        return UsageError(f"The schedule {name!r} is paused.", hint="mq.schedule_resume(…) lets it fire")
    near = get_close_matches(name, names, 1, 0.6)
    hint = f"there is {', '.join(names)}" if names else "make it first: mq.schedule_create(…)"
    hint = f"did you mean {near[0]!r}?" if near else hint
    return UsageError(f"There is no schedule {name!r}.", hint=hint)
