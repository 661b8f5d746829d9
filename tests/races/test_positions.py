"""The order of a lane: by position, then id, also for what comes back, comes late or shares its microsecond."""

from __future__ import annotations

import pytest

from tests.races.actor import Actor, Lease
from tests.races.stage import Stage, poll


@pytest.mark.parametrize("way", ["fail", "recover"])
def test_message_that_comes_back_keeps_its_position_on_a_channel_of_one_at_a_time(stage: Stage, way: str):
    stage.watcher.channel("a", max_concurrency=1)
    ids = stage.watcher.send_batch("a", 3)
    late = stage.watcher.send("a")
    consumer = stage.hire()
    seen: list[tuple[int, int]] = []
    for attempt in (1, 2, 3):
        [lease] = consumer.take(1, lease=600_000 if way == "fail" or attempt == 3 else 1)
        seen.append((lease.id, lease.attempt))
        if attempt == 3:
            consumer.complete([lease])
        elif way == "fail":
            assert consumer.fail([lease], wait="0 s") == ["retry"]
        else:
            poll(lambda: consumer.recover() == 1, "the lease is taken back")
    assert seen == [(ids[0], 1), (ids[0], 2), (ids[0], 3)]
    for expected in [*ids[1:], late]:
        leases = consumer.take(1)
        assert [lease.id for lease in leases] == [expected]
        consumer.complete(leases)


def test_deferred_message_goes_behind_what_is_due_by_then(stage: Stage):
    ids = stage.watcher.send_batch("a", 3)
    consumer = stage.hire()
    assert consumer.defer(consumer.take(1)) == ["settled"]
    assert [lease.id for lease in consumer.take(3)] == [*ids[1:], ids[0]]


def test_retry_that_is_due_while_a_batch_is_half_leased_comes_before_its_rest(stage: Stage):
    ids = stage.watcher.send_batch("a", 40)
    one, two = stage.hire(), stage.hire()
    first = one.take(5)
    two.take(5)
    assert one.fail(first[2:3], wait="0 s") == ["retry"]
    assert [lease.id for lease in two.take(31)] == [ids[2], *ids[10:]]


def _defer(actor: Actor, leases: list[Lease], at: str) -> None:
    actor.run(
        "select menzil.message_defer(%s::bigint[], %s::bigint[], array_fill(%s::timestamptz, array[%s]))",
        *([lease.id for lease in leases], [lease.attempt for lease in leases], at, len(leases)),
    )


@pytest.mark.parametrize("step", [1, 7, 40])
@pytest.mark.parametrize("head", [1, 5, 21, 22])
def test_leases_with_interleaved_ids_of_one_position_lose_nothing_when_a_late_message_cuts_in(
    stage: Stage, head: int, step: int
):
    """Two runs of one microsecond overlap by their ids. The first is half leased, and a message falls between.

    A head that moved up to what is left of the first run would leave the second run below it, for ever.
    """
    ids = stage.watcher.send_batch("a", 41)
    leases = stage.watcher.take(41)
    odd, late = leases[0::2], leases[35]
    even = [lease for lease in leases[1::2] if lease.id < ids[34] or lease.id == ids[37]]
    at = "2026-01-01 00:00:00+00"
    for group in (odd, even):
        _defer(stage.watcher, group, at)
        # One run each: more than 16 messages, so they are not put together.
    one, two = stage.hire(), stage.hire()
    first, second = one.take(len(odd), "a"), two.take(len(even), "a")
    assert [lease.id for lease in first] == [lease.id for lease in odd]
    assert [lease.id for lease in second] == [lease.id for lease in even]
    taken = {lease.id for lease in odd + even}
    stage.watcher.run(
        "update menzil.lease set unlock_at = now(), watch_at = now()"
        " where ids && %s::bigint[] or ids is null and lo_id = any (%s)",
        sorted(taken),
        sorted(taken),
    )
    assert one.recover() == len(taken)
    got = one.take(head, "a")
    _defer(two, [late], at)
    while len(got) < len(taken) + 1:
        got += one.take(min(step, len(taken) + 1 - len(got)), "a")
    assert sorted(lease.id for lease in got) == sorted(taken | {late.id})
    assert stage.nothing_is_ready()


def test_fresh_messages_whose_ids_are_not_in_the_order_of_their_times_are_leased_and_shown_as_they_are(stage: Stage):
    """A sender reads the clock, others draw ids, then the sender draws its id: 1, 5, 3, 4 in the order of the clock.

    The first and the last id lie as far apart as if there were no gap; id 2 belongs to another channel.
    """
    sender = stage.hire()
    with sender.open():
        ids = sender.run("select nextval('menzil.message_id') from generate_series(1, 6)")
        numbers = [row[0] for row in ids]
        [[start]] = sender.run("select clock_timestamp()")
        for number, channel, later in zip(numbers, "abaaaa", (0, 1, 3, 4, 2, 6), strict=True):
            sender.run(
                "with m as (insert into menzil.message (id, channel_id, priority, created_at, payload)"
                " select %s, c.id, 0, %s::timestamptz + %s * interval '1 us', '0' from menzil.channel c"
                " where c.name = %s returning *)"
                " insert into menzil.line (channel_id, rank, due_at, first_id, n)"
                " select m.channel_id, 10, m.created_at, m.id, 1 from m",
                *(number, start, later, channel),
            )
    leases = stage.watcher.take(4, "a")
    assert [lease.id for lease in leases] == [numbers[n] for n in (0, 4, 2, 3)]
    assert stage.watcher.complete(leases) == ["settled"] * 4
    assert {lease.id: lease.channel for lease in stage.watcher.take(2)} == {numbers[1]: "b", numbers[5]: "a"}
