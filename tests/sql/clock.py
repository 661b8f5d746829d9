"""Time travel: moves everything that is live into the past, so that time seems to have passed.

The engine asks the clock of the database and nothing else, so shifting every time it has noted by the same amount is
the same as waiting. History (archive, attempts, dead letters, events) stays where it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

Found = TypeVar("Found")

_SHIFTED = """
update menzil.message set due_at = due_at - %(by)s, created_at = created_at - %(by)s,
    scheduled_at = scheduled_at - %(by)s, expires_at = expires_at - %(by)s,
    next_retry_at = next_retry_at - %(by)s, first_leased_at = first_leased_at - %(by)s;
update menzil.ready set due_at = due_at - %(by)s, expires_at = expires_at - %(by)s;
update menzil.scheduled set due_at = due_at - %(by)s, expires_at = expires_at - %(by)s;
update menzil.lease set leased_at = leased_at - %(by)s, unlock_at = unlock_at - %(by)s;
update menzil.lease_batch set unlock_at = unlock_at - %(by)s;
update menzil.used_key set until_at = until_at - %(by)s;
update menzil.arrival set due_at = due_at - %(by)s,
    due_ats = case when due_ats is not null
                   then array(select u.at - %(by)s from unnest(due_ats) with ordinality u(at, n) order by u.n) end,
    news_at = news_at - %(by)s, wait_until = wait_until - %(by)s;
update menzil.lane set head_due = head_due - %(by)s, low_due = low_due - %(by)s, next_at = next_at - %(by)s,
    early_due = array(select u.at - %(by)s from unnest(early_due) with ordinality u(at, n) order by u.n);
update menzil.gate set opened_at = opened_at - %(by)s, probe_at = probe_at - %(by)s, wait_until = wait_until - %(by)s,
    last_success_at = last_success_at - %(by)s, last_failure_at = last_failure_at - %(by)s,
    released_at = array(select u.at - %(by)s from unnest(released_at) with ordinality u(at, n) order by u.n);
select setval('menzil.swept_at', 0), setval('menzil.counted_at', 0);
"""


def pass_time(conn: psycopg.Connection, seconds: float) -> None:
    """Let so many seconds pass for every live message, lease, limit and key."""
    by = f"interval '{seconds} seconds'"
    conn.execute(_SHIFTED.replace("%(by)s", by))


def created_at(conn: psycopg.Connection, message: int, at: str) -> None:
    """Pretend that a message was sent at another time."""
    conn.execute("update menzil.message set created_at = %s where id = %s", [at, message])


def until(look: Callable[[], Found], seconds: float = 10) -> Found:
    """Look again and again until there is something to see; fail when there is nothing in time."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.005)
    return found
