"""Cancel, purge, expiry and retry-now against consumers: the message goes one way, and an open one holds nobody up."""

from __future__ import annotations

import pytest

from tests.races.actor import Actor
from tests.races.stage import Stage, poll


def test_cancel_of_a_message_that_is_being_leased_is_too_late(stage: Stage):
    sent = stage.watcher.send("a")
    consumer, operator = stage.hire(), stage.hire()
    with consumer.open():
        leases = consumer.take(1)
        assert operator.cancel(sent) is False
    assert consumer.complete(leases) == ["settled"]
    assert stage.watcher.status(sent) == "completed"


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


def test_message_whose_purge_rolled_back_is_delivered(stage: Stage):
    ids = stage.watcher.send_batch("a", 30)
    consumer, operator = stage.hire(), stage.hire()
    with operator.open():
        assert operator.one("select menzil.channel_purge('a')") == 30
        for _ in range(5):
            assert consumer.dequeue(10) == []
        late = stage.watcher.send("a")
        assert [lease.id for lease in consumer.take(1)] == [late]
        operator.rollback()
    assert sorted(lease.id for lease in consumer.take(30)) == ids


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


def test_cancel_that_begins_while_a_consumer_waits_for_a_channel_does_not_block_it(stage: Stage):
    """The consumer looked for withdrawals before it waited; the cancel came between that look and its visit."""
    one, two, operator = stage.hire(), stage.hire(), stage.hire()
    for _ in range(50):
        second = stage.watcher.send_batch("b", 3)[1]
        stage.sweep()
        stage.watcher.run("select setval('menzil.withdrawn_at', 0)")
        one.begin()
        one.dequeue(1, "b")
        waiter = stage.start(two.dequeue, 3, "b")
        poll(lambda: waiter.done() or stage.waits(two), "it waits")  # noqa: B023
        with operator.open():
            operator.cancel(second)
            one.commit()
            if waiter.result():
                return
        stage.watcher.run("select menzil.channel_purge('b')")
    raise AssertionError("the consumer never got the channel that it waited for")


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_cancel_that_begins_between_the_look_and_the_visit_holds_up_that_one_dequeue_and_loses_nothing(
    stage: Stage, end: str
):
    first, second = stage.watcher.send_batch("a", 2)
    stage.sweep()
    stage.watcher.run("select setval('menzil.withdrawn_at', 0)")
    stage.watcher.run("""
        create function public.stop_here() returns trigger language plpgsql as $$
        begin
          if current_setting('application_name') = 'stops' then
            perform pg_advisory_xact_lock(4711);
          end if;
          return null;
        end $$;
        create trigger stop_here before delete on menzil.ready
          for each statement execute function public.stop_here()""")
    consumer, operator, gate, other = stage.hire(patient=True), stage.hire(), stage.hire(), stage.hire()
    consumer.run("set application_name = 'stops'")
    gate.begin()
    gate.run("select pg_advisory_xact_lock(4711)")
    taking = stage.start(consumer.dequeue, 2)
    stage.until_waiting(consumer, for_whom=gate)
    operator.begin()
    assert operator.cancel(first) is True
    gate.commit()
    stage.until_waiting(consumer, for_whom=operator)
    stage.watcher.send("b")
    assert [lease.channel for lease in other.take(1)] == ["b"]
    operator.run(end)
    left = [second] if end == "commit" else [first, second]
    taken = [lease.id for lease in taking.result()]
    taken += [lease.id for lease in other.take(len(left) - len(taken))]
    assert taken == left


@pytest.mark.parametrize("kind", ["plain", "keyed", "scheduled"])
def test_cancel_gets_a_waiting_message_that_a_dequeue_only_moved(stage: Stage, kind: str):
    """The dequeue takes one message and merely sorts the other: it is waiting before and after, never in flight."""
    consumer, operator = stage.hire(), stage.hire(patient=True)
    stage.watcher.send("a", priority=9)
    options: dict[str, object] = {"keyed": {"ordering_key": "k"}}.get(kind, {})
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


def test_purge_leaves_what_is_being_leased(stage: Stage):
    ids = stage.watcher.send_batch("a", 5)
    consumer, operator = stage.hire(), stage.hire()
    with consumer.open():
        leases = consumer.take(2)
        assert operator.one("select menzil.channel_purge('a')") == 3
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


def test_janitor_leaves_an_expired_message_that_a_consumer_is_ending(stage: Stage):
    consumer, janitor = stage.hire(), stage.hire()
    sent = expiring(stage.watcher, "a")
    with consumer.open():
        assert consumer.dequeue() == []
        assert janitor.one("select menzil.mark_expired_messages()") == 0
    assert stage.nothing_is_ready()
    assert stage.watcher.run("select id, status from menzil.archive") == [(sent, "expired")]


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
