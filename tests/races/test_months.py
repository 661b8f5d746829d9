"""Months that end while a consumer is at work, and months that are made or dropped while others read and send."""

from __future__ import annotations

import pytest

from tests.races.actor import LEASE, Actor, Lease
from tests.races.pause import pause_before
from tests.races.stage import Stage

NEXT = "select id, channel, num_attempts, ordering_key from menzil.message_next('{}', '{}', %s, %s, %s)"
SOON = "not between 0 and 100000 "


@pytest.mark.parametrize(
    "read",
    [
        "select id from menzil.feed_between('0', (select xid::text from menzil.feed_position('archive')))",
        "select id from menzil.archive_between('2020-01-01', '2030-01-01')",
        "select id from menzil.archive_between('2020-01-10', '2030-01-01')",
        "select id from menzil.archive",
    ],
    ids=["feed", "whole months", "parts of months", "archive"],
)
def test_month_that_is_dropped_after_the_snapshot_of_a_reader_is_left_out(stage: Stage, read: str):
    reader, consumer = stage.hire(), stage.hire()
    sent = stage.watcher.send("a")
    consumer.complete(consumer.take(1))
    stage.watcher.run("select menzil._make_archive_month('2020-01-01 00:00+00')")
    reader.begin("repeatable read")
    reader.run("select count(*) from menzil.archive_month")
    reader.run("select 1")
    assert stage.watcher.one("select menzil.cleanup_old_archive_partitions()") == 1
    assert reader.run(read) == [(sent,)]
    reader.commit()


def test_send_beside_a_month_that_is_made_late_waits_and_is_not_refused(stage: Stage):
    """The month has begun without a partition. PostgreSQL would refuse a row that has chosen the default partition."""
    maker, sender = stage.hire(), stage.hire(patient=True)
    this_month = "menzil._month_of(clock_timestamp())"
    maker.run(f"select menzil._drop_archive_month({this_month}, null)")
    maker.run("select menzil._renew_hot(h.name, clock_timestamp()) from menzil.hot_function h")
    first = sender.send("a")
    with maker.open():
        maker.run(f"select menzil._make_archive_month({this_month})")
        sending = stage.start(sender.send, "a")
        stage.until_waiting(sender, for_whom=maker)
    second = sending.result()
    maker.run("select menzil._renew_hot(h.name, clock_timestamp()) from menzil.hot_function h")
    third = sender.send("a")
    assert [lease.id for lease in stage.watcher.take(3)] == [first, second, third]
    assert stage.watcher.one("select count(*) from menzil.archive_default") == 0


#: The dequeue has decided to take the fresh way, and its statement follows.
FRESH = "v_unlock := v_now + p_lock_ms * interval '1 ms';   -- of the fresh messages"


def let_the_month_end_later(stage: Stage, function: str) -> None:
    """The function knows a month in which no message of this test lies. It ends when `end_the_month` says so."""
    watcher = stage.watcher
    watcher.run("create table public.month (ends timestamptz)")
    watcher.run("insert into public.month values ('infinity')")
    watcher.run(
        "create function public.month_ends() returns timestamptz stable language sql as 'select ends from public.month'"
    )
    before = "menzil._month_of(clock_timestamp()) - interval '1 day'"
    watcher.run(f"select menzil._make_archive_month(menzil._month_of({before}))")
    watcher.run(f"select menzil._renew_hot(%s, {before})", function)
    text = watcher.one(f"select pg_get_functiondef('menzil.{function}'::regproc)")
    end = watcher.one("select to_char(menzil._month_of(clock_timestamp()) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')")
    assert f"'{end}+00'" in text, "the bounds of a month are written otherwise now"
    # The last full look may be longer ago than usual, so that a slow machine does not make it the long way.
    text = text.replace(f"'{end}+00'", "public.month_ends()").replace(SOON, "not between 0 and 100000000 ")
    watcher.run(text)


def end_the_month(stage: Stage) -> None:
    stage.watcher.run("update public.month set ends = clock_timestamp()")


def next_ones(actor: Actor, limit: int, channels: list[str] | None) -> list[Lease]:
    return [Lease(*row) for row in actor.run(NEXT, LEASE, limit, channels)]


def all_came(stage: Stage, sent: list[int], taken: list[Lease]) -> None:
    """Every message was returned to the consumer that leased it, and the others can still be leased."""
    taken += stage.watcher.take(len(sent) - len(taken)) if len(taken) < len(sent) else []
    assert sorted(lease.id for lease in taken) == sent
    assert stage.watcher.run(
        "select id, outcome from menzil.message_complete(%s::bigint[], %s::bigint[])", sent, [1] * len(sent)
    ) == [(number, "settled") for number in sent]


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("channels", [["a"], None], ids=["one channel", "any channel"])
def test_month_that_ends_while_a_dequeue_takes_the_short_way_keeps_no_message(
    stage: Stage, limit: int, channels: list[str] | None
):
    """The dequeue asked the clock before the month ended, and the lane holds messages of the next month."""
    slow = stage.hire(patient=True)
    stage.watcher.send("a")
    stage.watcher.complete(stage.watcher.take(1))
    let_the_month_end_later(stage, "message_dequeue")
    pause = pause_before(stage, slow, "message_dequeue", "v_now := clock_timestamp();   -- later than")
    taking = stage.start(slow.dequeue, limit, *(channels or []))
    pause.reached()
    end_the_month(stage)
    sent = stage.watcher.send_batch("a", 6)
    stage.sweep()
    pause.open()
    all_came(stage, sent, taking.result())


@pytest.mark.parametrize("limit", [1, 2])
@pytest.mark.parametrize("channels", [["a"], None], ids=["one channel", "any channel"])
def test_month_that_ends_while_message_next_waits_for_a_lane_keeps_no_message(
    stage: Stage, limit: int, channels: list[str] | None
):
    """When it has waited for the lane it looks again, at a later time."""
    slow, holder = stage.hire(patient=True), stage.hire()
    stage.watcher.send_batch("a", 6)
    stage.sweep()
    let_the_month_end_later(stage, "message_next")
    text = stage.watcher.one("select pg_get_functiondef('menzil._wait_for_lane'::regproc)")
    stage.watcher.run(text.replace("'50ms'", "'20s'"))  # a slow machine waits as long as it takes
    with holder.open():
        holder.take(1, "a")
        taking = stage.start(next_ones, slow, limit, channels)
        stage.until_waiting(slow, for_whom=holder)
        end_the_month(stage)
        holder.take(5, "a")
        sent = stage.watcher.send_batch("a", 6)
        held = holder.take(1, "a")
    all_came(stage, sent, held + taking.result())


@pytest.mark.parametrize("limit", [1, 2])
def test_month_that_ends_while_a_dequeue_takes_the_fresh_way_keeps_no_message(stage: Stage, limit: int):
    slow, quick = stage.hire(patient=True), stage.hire()
    stage.watcher.send("a")
    stage.watcher.complete(stage.watcher.take(1))
    let_the_month_end_later(stage, "message_dequeue")
    pause = pause_before(stage, slow, "message_dequeue", FRESH)
    first = stage.watcher.send("a")
    taking = stage.start(slow.dequeue, limit)
    pause.reached()
    end_the_month(stage)
    quick.complete(quick.take(1))
    sent = [stage.watcher.send("a") for _ in range(limit)]
    pause.open()
    assert first < sent[0]
    all_came(stage, sent, taking.result())


@pytest.mark.parametrize("verb", ["fail", "defer", "complete"])
def test_settle_beside_a_month_that_is_made_late_finds_its_message(stage: Stage, verb: str):
    """The month has begun without a partition: its messages move while a session plans its first settle."""
    maker, sender = stage.hire(), stage.hire()
    this_month = "menzil._month_of(clock_timestamp())"
    maker.run(f"select menzil._drop_archive_month({this_month}, null)")
    maker.run("select menzil._renew_hot(h.name, clock_timestamp()) from menzil.hot_function h")
    sent = sender.send("a")
    leases = sender.take(1)
    settler = stage.hire(patient=True)
    with maker.open():
        maker.run(f"select menzil._make_archive_month({this_month})")
        settling = stage.start(getattr(settler, verb), leases)
        if verb != "complete":  # which needs no body
            stage.until_waiting(settler, for_whom=maker)
    assert settling.result() == ["retry" if verb == "fail" else "settled"]
    assert sender.status(sent) == ("completed" if verb == "complete" else "pending")
    assert stage.watcher.one("select lost from menzil._check_places()") == 0
