"""Tiny histories that break one promise each when they are told to (`wrong`), and keep it otherwise."""

from __future__ import annotations

from collections.abc import Callable

from tests.torture.tables import NAMES, Dead
from tests.torture.world import World, at

Case = Callable[[World, bool], None]
CASES: list[tuple[str, Case]] = []


def breaks(invariant: str) -> Callable[[Case], Case]:
    """Register a history under the promise it breaks."""

    def keep(case: Case) -> Case:
        CASES.append((invariant, case))
        return case

    return keep


@breaks("lost")
def acknowledged_and_nowhere(world: World, wrong: bool) -> None:
    world.send(state="ok" if wrong else "unknown")


@breaks("lost")
def an_id_that_means_another_message(world: World, wrong: bool) -> None:
    world.send("a", "ok", 1)
    world.send("b", "ok" if wrong else "unknown", 1)
    world.done(1, "a")


@breaks("lost")
def half_of_a_transaction(world: World, wrong: bool) -> None:
    world.note("send.begin", "sender", op=1, items=[{"ref": ref, "channel": "c"} for ref in ("a", "b")])
    world.note("send.unknown", "sender", op=1)
    world.done(1, "a")
    if not wrong:
        world.done(2, "b")


@breaks("ghost")
def rolled_back_and_delivered(world: World, wrong: bool) -> None:
    world.send(state="undone" if wrong else None)
    world.done()


@breaks("ghost")
def nobody_sent_it(world: World, wrong: bool) -> None:
    if not wrong:
        world.send()
    world.done()


@breaks("two_leases")
def leased_while_leased(world: World, wrong: bool) -> None:
    world.send()
    world.tried("deferred", 5, 11 if wrong else 10)
    world.lease(attempt=2)
    world.settle(attempt=2)
    world.tried("completed", 10, 20, attempt=2)
    world.row(num_attempts=2)


@breaks("two_leases")
def one_token_for_two(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    if wrong:
        world.lease()


@breaks("two_leases")
def one_token_for_two_lives_of_a_worker(world: World, wrong: bool) -> None:
    """In one life the handler of a transaction that met another one runs again."""
    world.send()
    world.done()
    for life in ("worker-1.1", "worker-1.2" if wrong else "worker-1.1"):
        world.note("handle.begin", life, id=1, attempt=1, ref="a", channel="booked")
        world.note("handle.end", life, id=1, attempt=1, ref="a", channel="booked", outcome="complete")


@breaks("two_leases")
def taken_back_before_its_time(world: World, wrong: bool) -> None:
    world.send()
    world.lease(lease_ms=1000)
    world.tried("recovered", 0, 900 if wrong else 1000)
    world.lease(attempt=2)
    world.settle(attempt=2)
    world.tried("completed", 1010, 1020, attempt=2)
    world.row(num_attempts=2, retry_count=1)


@breaks("two_settles")
def settled_twice(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    world.settle(answer="ok" if wrong else "unknown")


@breaks("two_ends")
def completed_and_then_cancelled(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    world.note("cancel.ok", "sender", id=1, answer=wrong)


@breaks("two_ends")
def ended_and_in_the_queue(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    if wrong:
        world.row("pending", ended=None)


@breaks("two_ends")
def an_accepted_settle_that_did_not_happen(world: World, wrong: bool) -> None:
    world.send()
    world.lease()
    world.settle(answer="ok" if wrong else "unknown")
    world.row("expired", num_attempts=0, expires_at=at(15))


@breaks("stale_accepted")
def an_old_token(world: World, wrong: bool) -> None:
    world.send()
    world.tried("deferred", 1, 5)
    world.lease(attempt=2)
    world.settle("defer", "ok" if wrong else "refused", attempt=1, stale=True)
    world.settle(attempt=2)
    world.tried("completed", 10, 20, attempt=2)
    world.row(num_attempts=2)


@breaks("stale_accepted")
def an_old_heartbeat(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    world.note("beat.ok" if wrong else "beat.refused", id=1, attempt=1, stale=True)


@breaks("stale_accepted")
def a_lease_that_was_taken_back(world: World, wrong: bool) -> None:
    world.send()
    world.lease()
    world.settle("defer", "ok" if wrong else "refused")
    world.tried("recovered", 1, 5)
    world.lease(attempt=2)
    world.settle(attempt=2)
    world.tried("completed", 10, 20, attempt=2)
    world.row(num_attempts=2, retry_count=1)


@breaks("stale_accepted")
def a_successor_was_there_first(world: World, wrong: bool) -> None:
    world.send()
    if not wrong:
        world.settle("defer")
    world.lease(attempt=2)
    if wrong:
        world.settle("defer")
    world.tried("deferred", 1, 5)
    world.settle(attempt=2)
    world.tried("completed", 10, 20, attempt=2)
    world.row(num_attempts=2)


@breaks("order")
def overtaken(world: World, wrong: bool) -> None:
    world.send("a", id=1, key="k")
    world.send("b", id=2, key="k")
    world.done(1, "a", 30 if wrong else 10, 40 if wrong else 20, key="k")
    world.done(2, "b", 21, 29, key="k")


@breaks("order")
def two_of_a_key_at_once(world: World, wrong: bool) -> None:
    world.send("a", id=1, key="k", scheduled_ms=5)
    world.send("b", id=2, key="k")
    world.done(1, "a", 10, 20, key="k", scheduled_at=at(5))
    world.done(2, "b", 19 if wrong else 20, 29, key="k")


@breaks("concurrency")
def three_where_two_may_be(world: World, wrong: bool) -> None:
    world.channel(max_concurrency=2, in_flight=0)
    for number in (1, 2, 3):
        world.send(f"m{number}", id=number)
        world.done(number, f"m{number}", 10 if wrong else 10 * number, 25 if wrong else 10 * number + 15)


@breaks("concurrency")
def a_limit_that_came_later(world: World, wrong: bool) -> None:
    world.channel(max_concurrency=1, in_flight=0)
    world.event("channel.created", "c", 0, max_concurrency=None)
    world.event("channel.changed", "c", 5 if wrong else 15, max_concurrency=1)
    for number in (1, 2):
        world.send(f"m{number}", id=number)
        world.done(number, f"m{number}", 10, 25)


@breaks("rate")
def too_many_in_an_interval(world: World, wrong: bool) -> None:
    world.channel(release_interval_ms=100, release_count=2)
    for number, leased in enumerate([0, 50, 99 if wrong else 100], 1):
        world.send(f"m{number}", id=number)
        world.done(number, f"m{number}", leased, leased + 1)


@breaks("early")
def before_its_schedule(world: World, wrong: bool) -> None:
    world.send(scheduled_ms=10)
    world.done(leased=9 if wrong else 10, scheduled_at=at(10))


@breaks("early")
def expired_before_its_expiry(world: World, wrong: bool) -> None:
    world.send(expires_ms=20)
    world.row("expired", ended=19 if wrong else 20, num_attempts=0, expires_at=at(20))


@breaks("late")
def leased_after_its_expiry(world: World, wrong: bool) -> None:
    world.send(expires_ms=10)
    world.done(leased=10 if wrong else 9, expires_at=at(10))


@breaks("budget")
def one_retry_too_many(world: World, wrong: bool) -> None:
    world.channel(max_retries=0 if wrong else 1)
    world.send()
    for attempt in (1, 2):
        world.tried("failed", 10 * attempt, 10 * attempt + 5, attempt=attempt)
    world.row("failed", num_attempts=2, retry_count=1)
    world.dead.append(Dead(1, "failed", False))


@breaks("budget")
def a_failure_that_did_not_count(world: World, wrong: bool) -> None:
    world.send()
    world.tried("recovered", 1, 5)
    world.lease(attempt=2)
    world.settle(attempt=2)
    world.tried("completed", 10, 20, attempt=2)
    world.row(num_attempts=2, retry_count=0 if wrong else 1)


@breaks("budget")
def dead_too_soon(world: World, wrong: bool) -> None:
    world.send()
    world.tried("failed", 1, 5, error="[RETRYABLE] no" if wrong else "[PERMANENT] no")
    world.row("failed")
    world.dead.append(Dead(1, "failed", False))


@breaks("counters")
def a_slot_that_never_came_back(world: World, wrong: bool) -> None:
    world.channel(max_concurrency=2, in_flight=1 if wrong else 0)


@breaks("counters")
def a_missing_attempt(world: World, wrong: bool) -> None:
    world.send()
    if not wrong:
        world.tried("deferred", 1, 5)
    world.lease(attempt=2)
    world.settle(attempt=2)
    world.tried("completed", 10, 20, attempt=2)
    world.row(num_attempts=2)


@breaks("counters")
def a_live_message_without_a_place(world: World, wrong: bool) -> None:
    world.places = dict.fromkeys(NAMES, 0) | {
        "live": 1,
        "standing": 0 if wrong else 1,
        "placeless": int(wrong),
        "guess": 1,
    }


@breaks("counters")
def a_pulse_that_missed_a_send(world: World, wrong: bool) -> None:
    world.places = dict.fromkeys(NAMES, 0)
    world.miscounted = ["sent of channel 1 by -1"] if wrong else []


@breaks("counters")
def a_message_in_two_places(world: World, wrong: bool) -> None:
    world.places = dict.fromkeys(NAMES, 0) | {"live": 1, "standing": 1, "twice": int(wrong), "guess": 1}


@breaks("counters")
def a_message_with_two_ends(world: World, wrong: bool) -> None:
    world.places = dict.fromkeys(NAMES, 0) | {"ended_twice": int(wrong)}


@breaks("counters")
def a_run_that_no_visit_finds(world: World, wrong: bool) -> None:
    world.places = dict.fromkeys(NAMES, 0) | {"live": 1, "standing": 1, "hidden_runs": int(wrong), "guess": 1}


@breaks("archived_once")
def archived_twice(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    if wrong:
        world.ended.append(world.ended[0])


@breaks("archived_once")
def failed_without_a_dead_letter(world: World, wrong: bool) -> None:
    world.send()
    world.tried("failed", 1, 5, error="[PERMANENT] no")
    world.row("failed")
    if not wrong:
        world.dead.append(Dead(1, "failed", False))


@breaks("feed")
def a_row_the_reader_never_got(world: World, wrong: bool) -> None:
    for number in (1, 2):
        world.send(f"m{number}", id=number)
        world.done(number, f"m{number}")
        if number == 1 or not wrong:
            world.note("feed", "reader", table="archive", xid=700 + number, id=number)


@breaks("feed")
def a_row_the_reader_got_twice(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    for _ in range(2 if wrong else 1):
        world.note("feed", "reader", table="archive", xid=701, id=1)


@breaks("drained")
def still_in_the_queue(world: World, wrong: bool) -> None:
    world.send()
    if wrong:
        world.row("pending", ended=None, num_attempts=0)
    else:
        world.done()


@breaks("restored")
def a_message_that_never_came_out_of_a_dump(world: World, wrong: bool) -> None:
    world.note("restored", "runner", file="1", live=2, left=[1] if wrong else [], twice=[], strangers=[], places="ok")


@breaks("restored")
def a_dump_in_which_a_message_has_no_place(world: World, wrong: bool) -> None:
    said = "error" if wrong else "ok"
    world.note("restored", "runner", file="1", live=2, left=[], twice=[], strangers=[], places=said)


@breaks("held_up")
def a_send_that_waited_for_a_stranger(world: World, wrong: bool) -> None:
    world.note("fault", "runner", n=1, what="stranger", target="reader")
    world.note("send.begin", "sender", op=1, items=[{"ref": "a", "channel": "c"}])
    world.now += 3500 if wrong else 2500
    world.note("send.ok", "sender", op=1, ids=[1])
    world.note("fault.over", "runner", n=1, what="stranger")
    world.done()


@breaks("deadlock")
def a_victim_of_a_deadlock(world: World, wrong: bool) -> None:
    world.note("error", where="complete", text="no", sqlstate="40P01" if wrong else "57P01")


@breaks("internal_error")
def an_error_that_should_never_be(world: World, wrong: bool) -> None:
    world.note("error", where="complete", text="no", sqlstate="XX000" if wrong else "08006")


@breaks("internal_error")
def a_message_that_cannot_be_moved(world: World, wrong: bool) -> None:
    world.event("message.stuck" if wrong else "message.hurried", "1")


@breaks("idempotent")
def one_key_and_two_messages(world: World, wrong: bool) -> None:
    for number in (1, 2):
        world.send("a", id=number if wrong else 1, idem="k")
        if number == 1 or wrong:
            world.done(number, "a", 10 * number, 10 * number + 5, idem="k")


@breaks("idempotent")
def a_key_that_is_used_again_after_its_message_was_completed(world: World, wrong: bool) -> None:
    """After a message that was cancelled its key is free; the next message of the key may do what it likes."""
    world.send("a", id=1, idem="k")
    if wrong:
        world.done(1, "a", 10, 15, idem="k")
    else:
        world.row("cancelled", 1, "a", 15, idem="k", num_attempts=0)
    world.send("a", id=2, idem="k")
    world.done(2, "a", 20, 25, idem="k")


@breaks("undelivered")
def completed_and_nobody_had_it(world: World, wrong: bool) -> None:
    world.send()
    world.note("handle.begin", "worker", id=1, attempt=1, ref="a")
    if not wrong:
        world.note("handle.end", "worker", id=1, attempt=1, ref="a", outcome="complete")
    world.tried("completed", 10, 20)
    world.row()
