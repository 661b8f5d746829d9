"""Cancel, purge, expiry and retry-now against consumers: the message goes one way, and an open one holds up no other.

A cancel waits for visits of the message's lane that began before it, a purge for all visits of its channel.
"""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.races.actor import Actor
from tests.races.pause import WAIT, pause_before, pause_on
from tests.races.stage import Stage, poll


def old_withdrawals(actor: Actor) -> None:
    """As if the last cancel had begun long ago: consumers are not careful because of the time alone."""
    actor.run("select setval('menzil.withdrawn_at', 0)")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_cancel_of_a_message_that_is_being_leased_waits_for_that_dequeue(stage: Stage, end: str):
    sent = stage.watcher.send("a")
    consumer, operator = stage.hire(), stage.hire(patient=True)
    with consumer.open():
        leases = consumer.take(1)
        cancelled = stage.start(operator.cancel, sent)
        stage.until_waiting(operator, for_whom=consumer)
        consumer.run(end)
    assert cancelled.result() is (end == "rollback")
    assert consumer.complete(leases) == ["settled" if end == "commit" else "unknown"]
    assert stage.watcher.status(sent) == ("completed" if end == "commit" else "cancelled")
    assert stage.nothing_is_ready()


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
@pytest.mark.parametrize("first", [True, False], ids=["first of its lane", "lane is known"])
def test_cancel_in_a_snapshot_older_than_the_lease_fails_and_ends_nothing(stage: Stage, isolation: str, first: bool):
    """The snapshot shows neither the lease nor, for the first message of a lane, the lane."""
    consumer, operator = stage.hire(), stage.hire()
    if not first:
        stage.watcher.send("a")
        consumer.complete(consumer.take(1))
    sent = stage.watcher.send("a")
    operator.begin(isolation)
    operator.run("select count(*) from menzil.message")
    leases = consumer.take(1)
    with pytest.raises(psycopg.errors.SerializationFailure):
        operator.cancel(sent)
    operator.rollback()
    assert consumer.complete(leases) == ["settled"]
    assert stage.watcher.status(sent) == "completed"
    assert stage.nothing_is_ready()


def test_cancel_beside_a_settle_ends_its_message_once(stage: Stage):
    """The settle commits between the two questions of the cancel: is it leased, and has it ended?"""
    sent = stage.watcher.send("a")
    consumer, operator = stage.hire(), stage.hire(patient=True)
    leases = consumer.take(1)
    pause = pause_before(stage, operator, "_end_of", "return v_done;")
    # Whichever is asked first, the operator stops with the answer.
    text = stage.watcher.one("select pg_get_functiondef('menzil._lease_of'::regproc)")
    stage.watcher.run(text.replace("return coalesce(", f"{WAIT}\n  return coalesce("))
    cancelling = stage.start(operator.cancel, sent)
    pause.reached()
    assert consumer.complete(leases) == ["settled"]
    pause.open()
    assert cancelling.result() is False
    assert stage.watcher.status(sent) == "completed"
    assert stage.watcher.one("select count(*) from menzil.done where %s between lo_id and hi_id", sent) == 1


def test_lease_passes_over_a_message_that_is_being_cancelled(stage: Stage):
    first, second = stage.watcher.send_batch("a", 2)
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        assert operator.cancel(first) is True
        assert [lease.id for lease in consumer.take(1)] == [second]
        assert consumer.dequeue() == []
    assert stage.nothing_is_ready()
    assert stage.watcher.status(first) == "cancelled"


def test_message_whose_cancel_rolled_back_is_delivered(stage: Stage):
    first, second = stage.watcher.send_batch("a", 2)
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        operator.cancel(first)
        assert [lease.id for lease in consumer.take(1)] == [second]
        assert consumer.dequeue() == []
        operator.rollback()
    assert [lease.id for lease in consumer.take(1)] == [first]


def test_open_cancel_holds_its_message_and_no_other_of_its_lane_and_is_final_when_it_commits(stage: Stage):
    ids = stage.watcher.send_batch("a", 30)
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        assert operator.cancel(ids[7]) is True
        old_withdrawals(stage.watcher)
        taken = consumer.take(29, "a")
        assert sorted(lease.id for lease in taken) == [n for n in ids if n != ids[7]]
        assert consumer.complete(taken) == ["settled"] * 29
        # The message waits aside for 20 ms again and again, and others that come later overtake it.
        more = stage.watcher.send("a")
        assert [lease.id for lease in consumer.take(1)] == [more]
    assert stage.nothing_is_ready()
    assert stage.watcher.status(ids[7]) == "cancelled"
    assert stage.watcher.one("select count(*) from menzil.archive where id = %s", ids[7]) == 1


def test_open_cancel_holds_its_message_and_gives_it_back_when_it_rolls_back(stage: Stage):
    ids = stage.watcher.send_batch("a", 30)
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        assert operator.cancel(ids[7]) is True
        old_withdrawals(stage.watcher)
        consumer.complete(consumer.take(29, "a"))
        operator.rollback()
    [lease] = consumer.take(1)
    assert (lease.id, lease.attempt) == (ids[7], 1)
    assert stage.nothing_is_ready()


def test_cancel_that_commits_between_the_lock_of_a_lane_and_the_question_for_withdrawals_is_noticed(stage: Stage):
    """Whether a cancel is open and whether one has committed are asked of one snapshot, so it is in one of the two."""
    first, second = stage.watcher.send_batch("a", 2)
    consumer, operator = stage.hire(patient=True), stage.hire()
    stage.sweep()
    pause = pause_before(stage, consumer, "_take_turns", "exit when turns is not null")
    operator.begin()
    assert operator.cancel(first) is True
    old_withdrawals(stage.watcher)
    taking = stage.start(consumer.dequeue, 2, "a")
    pause.reached()
    operator.commit()
    pause.open()
    taken = taking.result()
    taken += consumer.take(1 - len(taken))
    assert [lease.id for lease in taken] == [second]
    assert stage.watcher.status(first) == "cancelled"
    assert stage.nothing_is_ready()


def test_channel_whose_purge_is_open_gives_nothing_and_everything_after_it_rolled_back(stage: Stage):
    ids = stage.watcher.send_batch("a", 30)
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        assert operator.one("select menzil.channel_purge('a')") == 30
        late = stage.watcher.send("a")
        other = stage.watcher.send("b")
        assert [lease.id for lease in consumer.take(1)] == [other]
        for _ in range(5):
            assert consumer.dequeue(10) == []
        operator.rollback()
    assert [lease.id for lease in consumer.take(31)] == [*ids, late]


def test_message_that_is_sent_while_a_purge_is_open_is_delivered_after_it(stage: Stage):
    ids = stage.watcher.send_batch("a", 3)
    sender, consumer, operator = stage.hire(), stage.hire(), stage.hire()
    sender.begin()
    early = sender.send("a")
    with operator.open():
        assert operator.one("select menzil.channel_purge('a')") == 3
        late = stage.watcher.send("a")
        sender.commit()
    assert sorted(lease.id for lease in consumer.take(2)) == [early, late]
    assert {stage.watcher.status(message) for message in ids} == {"cancelled"}


@pytest.mark.parametrize("kind", ["plain", "set aside", "scheduled", "keyed"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_purge_leaves_a_message_that_an_open_transaction_cancels(stage: Stage, end: str, kind: str):
    one, two, consumer = stage.hire(), stage.hire(), stage.hire()
    first = stage.watcher.send("a", ordering_key="k" if kind == "keyed" else None)
    options = {"scheduled": "p_scheduled_at => now() + interval '1 hour'", "keyed": "p_ordering_key => 'k'"}
    second = stage.watcher.one(f"select menzil.send_with_options('a', '0', {options.get(kind, '0')})")
    third = stage.watcher.send("a")
    with one.open():
        assert one.cancel(second) is True
        if kind == "set aside":
            consumer.complete(consumer.take(2))
            poll(lambda: stage.watcher.run("select 1 from menzil.scheduled") != [], "it waits aside")
        assert two.one("select menzil.channel_purge('a')") == (0 if kind == "set aside" else 2)
        one.run(end)
    ended = [number for number in (first, second, third) if (number, end) != (second, "rollback")]
    if end == "rollback" and kind == "scheduled":
        assert stage.nothing_is_ready()
        assert stage.watcher.one("select status from menzil.queue") == "pending"
    elif end == "rollback":
        assert [lease.id for lease in consumer.take(1)] == [second]
    assert stage.nothing_is_ready()
    assert [row[0] for row in stage.watcher.run("select id from menzil.archive order by id")] == ended
    assert stage.watcher.status(second) == {"commit": "cancelled"}.get(
        end, "pending" if kind == "scheduled" else "processing"
    )


def test_open_cancel_behind_an_ordering_key_blocks_no_consumer(stage: Stage):
    first, second, third = (stage.watcher.send("a", ordering_key="k") for _ in range(3))
    consumer, operator = stage.hire(), stage.hire()
    leases = consumer.take(1)
    with operator.open():
        assert operator.cancel(second) is True
        consumer.complete(leases)
        stage.watcher.send("b")
        assert [lease.channel for lease in consumer.take(1)] == ["b"]
    assert [lease.id for lease in consumer.take(1)] == [third]
    assert stage.watcher.status(first) == "completed"


def test_open_purge_of_an_ordering_key_blocks_no_consumer_and_can_roll_back(stage: Stage):
    ids = [stage.watcher.send("a", ordering_key="k") for _ in range(3)]
    consumer, operator = stage.hire(), stage.hire()
    leases = consumer.take(1)
    with operator.open():
        assert operator.one("select menzil.channel_purge('a')") == 2
        consumer.complete(leases)
        assert consumer.dequeue(5) == []
        operator.rollback()
    for expected in ids[1:]:
        leases = consumer.take(1)
        assert [lease.id for lease in leases] == [expected]
        consumer.complete(leases)


def test_cancel_that_begins_while_a_consumer_waits_for_the_lane_ends_or_loses_its_message_once(stage: Stage):
    """Both wait for the same lane: who comes first gets the message, the other is told or goes on without it."""
    one, two, operator = stage.hire(), stage.hire(), stage.hire(patient=True)
    seen: set[bool] = set()
    for _ in range(30):
        first, second, third = stage.watcher.send_batch("b", 3)
        stage.sweep()
        old_withdrawals(stage.watcher)
        one.begin()
        mine = one.take(1, "b")
        waiter = stage.start(two.dequeue, 3, "b")
        cancel = stage.start(operator.cancel, second)
        stage.until_waiting(operator)
        one.commit()
        theirs = waiter.result()
        seen.add(cancel.result())
        assert (second in [lease.id for lease in theirs]) is not (cancel.result() or theirs == [])
        theirs += two.take((1 if cancel.result() else 2) - len(theirs), "b")
        assert [lease.id for lease in mine + theirs] == [first] + ([] if cancel.result() else [second]) + [third]
        two.complete(mine + theirs)
    assert stage.live() == 0
    assert True in seen


def test_cancel_that_begins_while_a_visit_is_under_way_waits_for_it_and_is_too_late(stage: Stage):
    """The visit asked for withdrawals before the cancel told of one, and holds the lane until it commits."""
    first, second = stage.watcher.send_batch("a", 2)
    stage.sweep()
    consumer, operator, other = stage.hire(patient=True), stage.hire(patient=True), stage.hire()
    pause = pause_on(stage, consumer, "insert", "lease")
    taking = stage.start(consumer.dequeue, 2)
    pause.reached()
    cancel = stage.start(operator.cancel, first)
    stage.until_waiting(operator, for_whom=consumer)
    stage.watcher.send("b")
    assert [lease.channel for lease in other.take(1)] == ["b"]
    pause.open()
    assert [lease.id for lease in taking.result()] == [first, second]
    assert cancel.result() is False


@pytest.mark.parametrize("kind", ["plain", "keyed", "scheduled"])
def test_cancel_gets_a_waiting_message_that_a_dequeue_only_moved(stage: Stage, kind: str):
    """The dequeue takes one message and merely sorts the other: it is waiting before and after, never in flight."""
    consumer, operator = stage.hire(), stage.hire(patient=True)
    stage.watcher.send("a", priority=9)
    options: dict[str, Any] = {"keyed": {"ordering_key": "k"}}.get(kind, {})
    sent = stage.watcher.send("a", **options)
    if kind == "scheduled":
        stage.watcher.run("select menzil.message_cancel(%s)", sent)
        sent = stage.watcher.one(
            "select menzil.send_with_options('a', '0', p_scheduled_at => clock_timestamp() + interval '30 ms')"
        )
        poll(lambda: stage.watcher.one("select scheduled_at < now() from menzil.message_status(%s)", sent), "it is due")
    with consumer.open():
        assert len(consumer.dequeue()) == 1
        cancelled = stage.start(operator.cancel, sent)
        poll(lambda: cancelled.done() or stage.waits(operator), "it acts")
    assert (cancelled.result(), stage.watcher.status(sent)) == (True, "cancelled")


@pytest.mark.parametrize("met_by", ["visit", "fold", "purge"])
def test_cancel_of_a_scheduled_message_that_is_just_joining_its_ordering_key_does_not_block_that_key(
    stage: Stage, met_by: str
):
    """One dequeue holds the gate, another one moves the message from the schedule to its key and has not committed."""
    holder, mover, operator, consumer = (stage.hire() for _ in range(4))
    stage.watcher.send("a")  # the lane exists
    stage.watcher.complete(stage.watcher.take(1))
    stage.watcher.send("a", priority=5, ordering_key="other")
    with holder.open():
        assert len(holder.take(1)) == 1
        first = stage.watcher.one(
            "select menzil.send_with_options('a', '0', p_ordering_key => 'k',"
            " p_scheduled_at => clock_timestamp() + interval '30 ms')"
        )
        poll(
            lambda: stage.watcher.one("select scheduled_at < now() from menzil.message_status(%s)", first), "it is due"
        )
        with mover.open():
            stage.watcher.run("select setval('menzil.deep_at', 0), setval('menzil.swept_at', 0)")
            assert mover.dequeue() == []
            assert mover.one("select count(*) from menzil.key_queue where id = %s and waits = 1", first) == 1
            assert operator.cancel(first) is True
    assert stage.watcher.status(first) == "cancelled"
    if met_by == "purge":
        stage.watcher.run("select menzil.channel_purge('a')")
    elif met_by == "fold":
        stage.sweep()
        stage.sweep()
    second = stage.watcher.send("a", ordering_key="k")
    assert [lease.id for lease in consumer.take(1)] == [second]
    assert stage.watcher.run("select id from menzil.key_queue where id = %s", first) == []


def test_purge_waits_for_an_open_dequeue_and_leaves_what_it_leased(stage: Stage):
    ids = stage.watcher.send_batch("a", 5)
    consumer, operator = stage.hire(), stage.hire(patient=True)
    with consumer.open():
        leases = consumer.take(2)
        purged = stage.start(operator.one, "select menzil.channel_purge('a')")
        stage.until_waiting(operator, for_whom=consumer)
    assert purged.result() == 3
    assert consumer.complete(leases) == ["settled"] * 2
    statuses = [stage.watcher.status(message) for message in ids]
    assert statuses == ["completed"] * 2 + ["cancelled"] * 3


def expiring(actor: Actor, channel: str, **options: object) -> int:
    """A message that expires in a moment, returned when that moment has passed."""
    sent = actor.one(
        "select menzil.send_with_options(%s, '0', p_ordering_key => %s,"
        " p_expires_at => clock_timestamp() + interval '30 ms')",
        channel, options.get("ordering_key"),
    )  # fmt: skip
    poll(lambda: actor.one("select expires_at < now() from menzil.message_status(%s)", sent), "it has expired")
    return sent


def test_expired_message_is_never_leased_and_ends_once(stage: Stage):
    consumer, janitor = stage.hire(), stage.hire()
    sent = expiring(stage.watcher, "a")
    with janitor.open():
        assert janitor.one("select menzil.mark_expired_messages()") == 1
        assert consumer.dequeue() == []
    assert stage.nothing_is_ready()
    assert stage.watcher.run("select id, status from menzil.archive") == [(sent, "expired")]


def test_expiry_beside_a_settle_ends_its_message_once(stage: Stage):
    """The settle commits between the two questions of the janitor: is it leased, and has it ended?"""
    consumer, janitor = stage.hire(), stage.hire(patient=True)
    sent = stage.watcher.send("a", expires_at=stage.watcher.one("select clock_timestamp() + interval '1 s'"))
    leases = consumer.take(1)
    stage.watcher.run("select pg_sleep_until(expires_at) from menzil.message")
    pause = pause_before(
        stage, janitor, "_expire_one", "if (menzil._end_of(p_id)).lo_id is null then\n      if v_unlock"
    )
    expiring = stage.start(janitor.run, "select menzil.mark_expired_messages()")
    pause.reached()
    assert consumer.complete(leases) == ["settled"]
    pause.open()
    expiring.result()
    assert stage.watcher.status(sent) == "completed"
    assert stage.watcher.one("select count(*) from menzil.done where %s between lo_id and hi_id", sent) == 1


def test_janitor_leaves_an_expired_message_that_a_consumer_is_ending(stage: Stage):
    consumer, janitor = stage.hire(), stage.hire()
    sent = expiring(stage.watcher, "a")
    with consumer.open():
        assert consumer.dequeue() == []
        assert janitor.one("select menzil.mark_expired_messages()") == 0
    assert stage.nothing_is_ready()
    assert stage.watcher.run("select id, status from menzil.archive") == [(sent, "expired")]


def test_expired_messages_of_a_held_lane_keep_no_other_waiting(stage: Stage):
    """More of them than one round looks at, and all expired before the one of the other channel."""
    holder, janitor = stage.hire(), stage.hire()
    stage.watcher.send("a")
    with holder.open():
        assert len(holder.take(1)) == 1
        stage.watcher.run(
            "select menzil.send_with_options('a', '0', p_expires_at => clock_timestamp() + interval '10 ms')"
            " from generate_series(1, 25)"
        )
        other = expiring(stage.watcher, "b")
        rounds = [janitor.one("select menzil.mark_expired_messages(10)") for _ in range(3)]
        assert (rounds, stage.watcher.status(other)) == ([0, 0, 1], "expired")
    poll(
        lambda: stage.watcher.one("select count(*) from menzil.expiring where expires_at > now()") == 0,
        "a second passes",
    )
    assert janitor.one("select menzil.mark_expired_messages(100)") == 25


def test_expired_messages_that_an_open_transaction_cancels_keep_no_other_waiting(stage: Stage):
    operator, janitor = stage.hire(), stage.hire()
    several = [
        stage.watcher.one(
            "select menzil.send_with_options('a', '0', p_expires_at => clock_timestamp() + interval '1 s')"
        )
        for _ in range(25)
    ]
    with operator.open():
        assert all(operator.cancel(number) for number in several)
        other = stage.watcher.one(
            "select menzil.send_with_options('b', '0', p_expires_at => clock_timestamp() + interval '1 s')"
        )
        poll(lambda: stage.watcher.one("select expires_at < now() from menzil.message_status(%s)", other), "expired")
        rounds = [janitor.one("select menzil.mark_expired_messages(10)") for _ in range(3)]
        assert (rounds, stage.watcher.status(other)) == ([0, 0, 1], "expired")


def test_message_that_expires_while_leased_is_settled_as_usual(stage: Stage):
    consumer, janitor = stage.hire(), stage.hire()
    sent = stage.watcher.one(
        "select menzil.send_with_options('a', '0', p_expires_at => clock_timestamp() + interval '400 ms')"
    )
    leases = consumer.take(1)
    poll(lambda: stage.watcher.one("select expires_at < now() from menzil.message_status(%s)", sent), "it has expired")
    assert janitor.one("select menzil.mark_expired_messages()") == 0
    assert consumer.complete(leases) == ["settled"]


def test_expired_head_of_a_key_lets_the_rest_go_on_while_its_end_is_open(stage: Stage):
    consumer, janitor = stage.hire(), stage.hire()
    expiring(stage.watcher, "a", ordering_key="k")
    second = stage.watcher.send("a", ordering_key="k")
    with janitor.open():
        assert janitor.one("select menzil.mark_expired_messages()") == 1
        assert consumer.dequeue() == []
    assert [lease.id for lease in consumer.take(1)] == [second]


def test_retry_now_and_promotion_make_one_delivery(stage: Stage):
    stage.watcher.send("a")
    consumer, operator = stage.hire(), stage.hire()
    [lease] = consumer.take(1)
    consumer.fail([lease], wait="1 hour")
    with operator.open():
        assert operator.one("select menzil.message_retry_now(%s)", lease.id) is True
        stage.sweep()
        assert consumer.dequeue() == []
    [again] = consumer.take(1)
    assert (again.id, again.attempt) == (lease.id, 2)
    assert stage.nothing_is_ready()


def test_retry_now_rolled_back_leaves_the_retry_where_it_was(stage: Stage):
    stage.watcher.send("a")
    consumer, operator = stage.hire(), stage.hire()
    leases = consumer.take(1)
    consumer.fail(leases, wait="300 ms")
    with operator.open():
        operator.run("select menzil.message_retry_now(%s)", leases[0].id)
        operator.rollback()
    [again] = consumer.take(1)
    assert (again.id, again.attempt) == (leases[0].id, 2)
    assert stage.watcher.one(
        "select leased_at - lag >= interval '300 ms' from menzil.lease,"
        " lateral (select ended_at as lag from menzil.attempts where outcome = 'failed') a"
    )


def test_run_that_loses_a_thousand_messages_to_one_transaction_is_written_once_a_fold(stage: Stage):
    """A run of many messages is a long row: written for each of them, it would keep all consumers waiting."""
    consumer, operator = stage.hire(), stage.hire()
    ids = stage.watcher.send_batch("a", 1201)
    other = stage.watcher.send("b")
    assert len(consumer.take(1, "a")) == 1
    left = ids[1::6]
    gone = sorted(set(ids[1:]) - set(left))
    stage.watcher.run("create sequence public.writes")
    stage.watcher.run("""
        create function public.count_write() returns trigger language plpgsql as $$
        begin perform nextval('public.writes'); return new; end $$""")
    stage.watcher.run("create trigger t after update on menzil.run for each row execute function public.count_write()")
    cancel = "select count(*) filter (where menzil.message_cancel(u.id)) from unnest(%s::bigint[]) u(id)"
    assert operator.one(cancel, gone) == 1000
    stage.watcher.run("select setval('menzil.swept_at', 0)")  # the next look is a full one
    for channel, expected in (("b", [other]), ("a", left)):
        taken = consumer.take(1, channel)
        assert [lease.id for lease in taken + consumer.dequeue(1201, channel)] == expected
    assert 1 <= stage.watcher.one("select pg_sequence_last_value('public.writes')") <= 5
    assert stage.nothing_is_ready()


def test_dequeue_that_meets_thousands_of_cancelled_messages_does_not_visit_them_one_by_one(stage: Stage):
    """A look folds two thousand lines; the messages that the other lines cancel still stand in their run."""
    consumer, operator = stage.hire(), stage.hire()
    ids = stage.watcher.send_batch("a", 5001)
    assert len(consumer.take(1, "a")) == 1
    cancel = "select count(*) filter (where menzil.message_cancel(u.id)) from unnest(%s::bigint[]) u(id)"
    assert operator.one(cancel, ids[1:5000]) == 4999
    versions = "select max(v) from menzil.lane"
    before = stage.watcher.one(versions)
    stage.watcher.run("select setval('menzil.swept_at', 0)")  # the next look is a full one
    assert [lease.id for lease in consumer.take(1)] == [ids[5000]]
    assert stage.watcher.one(versions) - before < 20
    assert stage.watcher.one("select count(*) from menzil.withdrawn") == 0
