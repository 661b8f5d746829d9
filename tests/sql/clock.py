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
create temp table live_id on commit drop as
  select m.id from menzil.message m where (menzil._end_of(m.id)).lo_id is null;
update menzil.key set created_at = created_at - %(by)s where message_id in (select id from live_id);
update menzil.done d set ended_at = ended_at - %(by)s
 where exists (select 1 from menzil.key k where k.message_id between d.lo_id and d.hi_id
                  and (d.ids is null or k.message_id = any (d.ids)));
update menzil.message set created_at = created_at - %(by)s, scheduled_at = scheduled_at - %(by)s,
    expires_at = expires_at - %(by)s where id in (select id from live_id);
update menzil.returned set created_at = created_at - %(by)s, place_at = place_at - %(by)s, due_at = due_at - %(by)s,
    first_leased_at = first_leased_at - %(by)s where id in (select id from live_id);
update menzil.scheduled set due_at = due_at - %(by)s, place_at = place_at - %(by)s;
update menzil.expiring set expires_at = expires_at - %(by)s,
    created_at = created_at - case when id in (select id from live_id) then %(by)s else interval '0' end;
update menzil.lease set leased_at = leased_at - %(by)s, unlock_at = unlock_at - %(by)s, watch_at = watch_at - %(by)s;
update menzil.line set due_at = due_at - %(by)s, news_at = news_at - %(by)s, wait_until = wait_until - %(by)s;
update menzil.aside set due_at = due_at - %(by)s, news_at = news_at - %(by)s, wait_until = wait_until - %(by)s;
update menzil.run set due_at = due_at - %(by)s, last_due = last_due - %(by)s;
update menzil.lane set head_due = head_due - %(by)s, tail_due = tail_due - %(by)s, next_at = next_at - %(by)s,
    v = v + 1;
update menzil.gate set opened_at = opened_at - %(by)s, probe_at = probe_at - %(by)s, wait_until = wait_until - %(by)s,
    last_success_at = last_success_at - %(by)s, last_failure_at = last_failure_at - %(by)s,
    released_at = array(select u.at - %(by)s from unnest(released_at) with ordinality u(at, n) order by u.n);
update menzil.setting_value set archive_off_at = archive_off_at - %(by)s;
select setval('menzil.swept_at', 0), setval('menzil.counted_at', 0), setval('menzil.deep_at', 0),
       setval('menzil.turn_mark', 0);
drop table live_id;
"""


def pass_time(conn: psycopg.Connection, seconds: float) -> None:
    """Let so many seconds pass for every live message, lease, limit and key."""
    by = f"interval '{seconds} seconds'"
    conn.execute(_SHIFTED.replace("%(by)s", by))


def created_at(conn: psycopg.Connection, message: int, at: str) -> None:
    """Pretend that a message was sent at another time."""
    with conn.transaction():
        conn.execute("select menzil._make_archive_month(menzil._month_of(%s))", [at])
        conn.execute("update menzil.message set created_at = %s where id = %s", [at, message])
        conn.execute("update menzil.returned set created_at = %s where id = %s", [at, message])
        conn.execute("update menzil.key set created_at = %s where message_id = %s", [at, message])
        conn.execute("update menzil.expiring set created_at = %s where id = %s", [at, message])
        conn.execute("update menzil.dead_letter set created_at = %s where original_message_id = %s", [at, message])
        # Its line or run said that it is fresh and of this month.
        conn.execute("update menzil.line set flags = flags | 1 where flags & 64 = 0 and rank is not null")
        conn.execute("update menzil.run set flags = flags | 1")


def until(look: Callable[[], Found], seconds: float = 60) -> Found:
    """Look again and again until there is something to see; fail when there is nothing in time."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing came in time"
        time.sleep(0.005)
    return found
