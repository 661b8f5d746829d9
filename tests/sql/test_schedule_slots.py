"""menzil.schedule_slots: what became of the last slots of a schedule."""

from __future__ import annotations

import psycopg
import pytest

from tests.sql.queue import Queue


def test_last_slots_tell_what_was_sent_and_what_was_missed(queue: Queue) -> None:
    queue.call("schedule_create", "tick", "* * * * *", "UTC", "work", {})
    queue.all("update menzil.schedule set created_at = now() - interval '1 h' returning 1")
    start = queue.one("select date_trunc('minute', now()) - interval '30 min'")
    sent = queue.send()
    ids = [sent, queue.send(), None]
    queue.complete(queue.lease())
    for minute, message in ((0, ids[0]), (1, ids[1]), (9, 987654321)):
        queue.all(
            "insert into menzil.schedule_slot (schedule_id, slot_at, message_id)"
            " select id, %s + %s * interval '1 min', %s from menzil.schedule returning 1", start, minute, message,
        )  # fmt: skip
    found = queue.rows("schedule_slots", "tick", 5)
    told = [(row.status, row.slots, row.message_id) for row in found]
    assert told[1:] == [("gone", 1, 987654321), ("missed", 7, None), ("pending", 1, ids[1]), ("completed", 1, sent)]
    assert (told[0][0], told[0][2]) == ("missed", None)
    assert 19 <= told[0][1] <= 21
    assert found[2].slot_at < found[2].last_at < found[1].slot_at
    with pytest.raises(psycopg.errors.UndefinedObject, match="There is no schedule named"):
        queue.rows("schedule_slots", "tack")
