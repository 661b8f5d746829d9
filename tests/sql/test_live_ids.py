"""Live messages by id: the short look for all months finds what the view finds, in every place a message can be in."""

from __future__ import annotations

from tests.sql.queue import Queue


def short(queue: Queue) -> list[int]:
    return [row[0] for row in queue.all("select id from menzil._live_ids_to(9223372036854775807) order by id")]


def whole(queue: Queue) -> list[int]:
    return [row[0] for row in queue.all("select id from menzil.queue order by id")]


def test_the_short_look_finds_the_same_messages_as_the_view_in_every_place(queue: Queue) -> None:
    single = queue.send()
    batch = queue.send_batch("work", 5)
    queue.send_batch("work", 3)
    later = queue.send(scheduled_at=queue.one("select now() + interval '1 h'"))
    keyed = [queue.send(ordering_key="k") for _ in range(3)]
    assert short(queue) == whole(queue), "in lines of the log"
    taken = queue.dequeue(2)
    assert short(queue) == whole(queue), "in a lease, and in a run whose first messages are leased"
    queue.complete(taken[0])
    queue.call("message_cancel", batch[-1])
    assert short(queue) == whole(queue), "after an end and a cancel"
    queue.fail(taken[1])
    assert short(queue) == whole(queue), "back for a retry"
    queue.call("maintain")
    found = short(queue)
    assert found == whole(queue), "folded"
    assert {later, *keyed} <= set(found)
    assert single not in found, "it has ended"
    some = found[len(found) // 2]
    below = [row[0] for row in queue.all("select id from menzil._live_ids_to(%s) order by id", some)]
    assert below == [number for number in found if number <= some]


def test_the_newest_try_is_that_of_the_message_that_was_tried_not_of_one_that_waits(queue: Queue) -> None:
    assert queue.one("select menzil.newest_try()") is None
    first = queue.send()
    queue.complete(queue.lease())
    assert queue.one("select menzil.newest_try()") == first
    second = queue.send()
    queue.fail(queue.lease())
    queue.send_batch("work", 10)
    assert queue.one("select menzil.newest_try()") == second
