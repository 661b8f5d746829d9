"""One idempotency key, several transactions: one message, whoever comes first, and no gap when it ends."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import psycopg
import pytest

from tests.races.actor import Actor
from tests.races.pause import Pause, pause_on
from tests.races.stage import Stage

ISOLATIONS = ["read committed", "repeatable read"]


def keyed(actor: Actor, payload: object = 0, way: str = "send") -> int:
    if way == "send":
        return actor.send("a", payload, idempotency_key="k")
    return actor.send_many({"endpoint": "a", "payload": payload, "idempotency_key": "k"})[0]


@pytest.mark.parametrize("way", ["send", "send_many"])
def test_second_sender_of_a_key_waits_and_gets_the_id_of_the_first(stage: Stage, way: str):
    one, two = stage.hire(), stage.hire(patient=True)
    with one.open():
        first = keyed(one, way=way)
        second = stage.start(keyed, two, way=way)
        stage.until_waiting(two, for_whom=one)
    assert second.result() == first
    assert stage.live() == 1


@pytest.mark.parametrize("way", ["send", "send_many"])
def test_second_sender_of_a_key_sends_when_the_first_rolls_back(stage: Stage, way: str):
    one, two, consumer = stage.hire(), stage.hire(patient=True), stage.hire()
    with one.open():
        first = keyed(one, way=way)
        second = stage.start(keyed, two, way=way)
        stage.until_waiting(two, for_whom=one)
        one.rollback()
    assert second.result() != first
    assert [lease.id for lease in consumer.take(1)] == [second.result()]


def test_second_sender_of_a_key_with_another_payload_is_refused_when_the_first_commits(stage: Stage):
    one, two = stage.hire(), stage.hire(patient=True)
    with one.open():
        keyed(one, 1)
        second = stage.start(keyed, two, 2)
        stage.until_waiting(two, for_whom=one)
    with pytest.raises(psycopg.errors.UniqueViolation, match="same key with different payload"):
        second.result()


def test_keys_belong_to_their_channel_and_do_not_wait_for_another_one(stage: Stage):
    one, two = stage.hire(), stage.hire()
    with one.open():
        first = one.send("a", idempotency_key="k")
        second = two.send("b", idempotency_key="k")
    assert first != second


@pytest.fixture
def paused(stage: Stage) -> tuple[Actor, Pause]:
    """A sender that stops after it has looked for its key and before it takes it."""
    sender = stage.hire(patient=True)
    return sender, pause_on(stage, sender, "insert", "key")


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("way", ["send", "send_many"])
def test_send_that_looked_before_its_key_came_and_went_makes_no_second_message(
    stage: Stage, paused: tuple[Actor, Pause], isolation: str, way: str
):
    sender, pause = paused
    late = stage.start(keyed_in, sender, isolation, way)
    pause.reached()
    first = keyed(stage.watcher)
    stage.watcher.complete(stage.watcher.take(1))
    pause.open()
    assert answer(late, sender, isolation) in (first, None)
    assert stage.live() == 0


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("way", ["send", "send_many"])
@pytest.mark.parametrize("end", ["complete", "cancel", "dead", "expire"])
def test_send_that_meets_the_open_end_of_its_key_gets_the_message_that_still_lives_and_does_not_wait(
    stage: Stage, paused: tuple[Actor, Pause], isolation: str, way: str, end: str
):
    """As if it had come a moment earlier. After the end is committed only a completed message keeps its key."""
    sender, pause = paused
    ender = stage.hire()
    late = stage.start(keyed_in, sender, isolation, way)
    pause.reached()
    first = keyed(stage.watcher)
    end_it(ender, first, end)
    pause.open()
    assert answer(late, sender, isolation) in (first, None)
    ender.commit()
    assert stage.live() == 0
    again = keyed(stage.watcher, way=way)
    assert (again == first) is (end == "complete")
    assert stage.live() == (0 if end == "complete" else 1)


@pytest.mark.parametrize("way", ["send", "send_many"])
def test_without_retention_a_send_that_looked_before_its_key_came_and_went_sends_anew(
    stage: Stage, paused: tuple[Actor, Pause], way: str
):
    stage.watcher.run("select menzil.set_setting('idempotency_retention', '0')")
    sender, pause = paused
    late = stage.start(keyed, sender, way=way)
    pause.reached()
    first = keyed(stage.watcher)
    stage.watcher.complete(stage.watcher.take(1))
    pause.open()
    assert late.result() != first
    assert [lease.id for lease in stage.watcher.take(1)] == [late.result()]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_send_of_a_key_that_housekeeping_is_forgetting_waits_and_makes_one_message(stage: Stage, end: str):
    first = keyed(stage.watcher)
    stage.watcher.complete(stage.watcher.take(1))
    forget(stage.watcher)
    janitor, sender = stage.hire(), stage.hire(patient=True)
    with janitor.open():
        assert janitor.one("select menzil.cleanup_used_keys()") == 1
        late = stage.start(keyed, sender)
        stage.until_waiting(sender, for_whom=janitor)
        janitor.run(end)
    assert late.result() != first
    assert keyed(stage.watcher) == late.result()
    assert stage.live() == 1


def test_housekeeping_leaves_a_key_that_an_open_send_takes_again(stage: Stage):
    keyed(stage.watcher)
    stage.watcher.complete(stage.watcher.take(1))
    forget(stage.watcher)
    janitor, sender = stage.hire(), stage.hire()
    with sender.open():
        again = keyed(sender)
        assert janitor.one("select menzil.cleanup_used_keys()") == 0
    assert keyed(stage.watcher) == again
    assert stage.live() == 1


@pytest.mark.parametrize("call", ["cleanup_used_keys()", "maintain()", "message_erase({id})"])
def test_send_waits_for_an_open_transaction_that_forgets_its_free_key(stage: Stage, call: str):
    first, other, sender = keyed(stage.watcher), stage.hire(), stage.hire(patient=True)
    assert stage.watcher.cancel(first) is True
    with other.open():
        other.run("select menzil." + call.format(id=first))
        second = stage.start(keyed, sender)
        stage.until_waiting(sender, for_whom=other)
    assert second.result() > first
    assert stage.live() == 1


def test_erasing_a_message_whose_key_is_taken_again_leaves_the_key_of_the_new_one(stage: Stage):
    first, sender, eraser = keyed(stage.watcher), stage.hire(), stage.hire(patient=True)
    assert stage.watcher.cancel(first) is True
    with sender.open():
        second = keyed(sender)
        erased = stage.start(lambda: eraser.one("select menzil.message_erase(%s)", first))
        stage.until_waiting(eraser, for_whom=sender)
    assert erased.result() is True
    hashes = "select count(*) from menzil.key where message_id = %s and payload_hash is not null"
    assert stage.watcher.one(hashes, second) == 1


def forget(actor: Actor) -> None:
    """The retention of every key is over."""
    actor.run("update menzil.done set ended_at = ended_at - interval '20 years'")


def keyed_in(actor: Actor, isolation: str, way: str) -> int:
    with actor.open(isolation):
        return keyed(actor, way=way)


def answer(late: Future[int], sender: Actor, isolation: str) -> int | None:
    """The id, or None for "try again", which is the one honest answer to who looks through an older snapshot."""
    try:
        return late.result()
    except psycopg.errors.SerializationFailure:
        assert isolation == "repeatable read"
        sender.rollback()
        return None


def end_it(ender: Actor, message: int, end: str) -> None:
    """Ends a waiting message in a transaction that stays open."""
    leases = ender.take(1) if end in ("complete", "dead") else []
    if end == "expire":
        ender.run("update menzil.message set expires_at = now()")
        ender.run("insert into menzil.expiring select now(), id, created_at from menzil.message")
    ender.begin()
    if end == "complete":
        assert ender.complete(leases) == ["settled"]
    elif end == "dead":
        assert ender.fail(leases, "[PERMANENT] no") == ["dead"]
    elif end == "cancel":
        assert ender.cancel(message) is True
    else:
        assert ender.one("select menzil.mark_expired_messages()") == 1


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_send_whose_snapshot_is_older_than_the_settle_makes_no_second_message(stage: Stage, isolation: str):
    first = keyed(stage.watcher)
    consumer, sender = stage.hire(), stage.hire()
    leases = consumer.take(1)
    sender.begin(isolation)
    sender.run("select count(*) from menzil.queue")
    assert consumer.complete(leases) == ["settled"]
    try:
        assert keyed(sender) == first
        sender.commit()
    except psycopg.errors.SerializationFailure:
        assert isolation == "repeatable read"
        sender.rollback()
    assert stage.live() == 0


def test_batches_with_the_same_keys_in_another_order_do_not_deadlock(stage: Stage):
    one, two = stage.hire(patient=True), stage.hire(patient=True)
    barrier = threading.Barrier(2)

    def batch(actor: Actor, keys: list[str]) -> dict[str, int]:
        barrier.wait()
        ids = actor.send_many(*({"endpoint": key[0], "idempotency_key": key} for key in keys))
        return dict(zip(keys, ids, strict=True))

    for number in range(25):
        keys = [f"{channel}{number}-{n}" for n in range(20) for channel in "ab"]
        first, second = stage.start(batch, one, keys), stage.start(batch, two, keys[::-1])
        assert first.result() == second.result()
    assert stage.live() == 25 * 40


def test_batch_waits_for_an_open_batch_with_the_same_keys_and_then_shares_its_ids(stage: Stage):
    one, two = stage.hire(), stage.hire(patient=True)
    messages = [{"endpoint": "a", "idempotency_key": key} for key in "xyz"]
    with one.open():
        ids = one.send_many(*messages)
        second = stage.start(two.send_many, *messages[::-1])
        stage.until_waiting(two, for_whom=one)
    assert second.result() == ids[::-1]


def test_eight_senders_of_one_key_make_one_message_while_it_is_consumed(stage: Stage):
    barrier = threading.Barrier(9)
    senders = [stage.hire(patient=True) for _ in range(8)]
    consumer = stage.hire(patient=True)

    def send(actor: Actor, number: int) -> int:
        barrier.wait()
        return actor.send("a", idempotency_key=f"k{number}")

    def consume() -> None:
        barrier.wait()
        for _ in range(10):
            consumer.complete(consumer.dequeue(3))

    for number in range(30):
        futures = [stage.start(send, sender, number) for sender in senders]
        working = stage.start(consume)
        assert len({future.result() for future in futures}) == 1
        working.result()
    consumer.complete(consumer.take(stage.live()))
    assert stage.watcher.one("select count(*) from menzil.archive") == 30


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_open_sender_of_a_used_key_does_not_hold_up_the_settle_of_its_message(stage: Stage, isolation: str):
    first = keyed(stage.watcher)
    consumer, sender = stage.hire(), stage.hire()
    leases = consumer.take(1)
    with sender.open(isolation):
        assert keyed(sender) == first
        assert consumer.complete(leases) == ["settled"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_sender_of_two_used_keys_does_not_deadlock_with_the_settle_of_their_messages(stage: Stage, isolation: str):
    for key in ["k1", "k2"]:
        stage.watcher.send("a", idempotency_key=key)
    consumer, sender, third = stage.hire(patient=True), stage.hire(patient=True), stage.hire()
    leases = consumer.take(2)
    with sender.open(isolation):
        sender.send("a", idempotency_key="k1")
        settle = stage.start(consumer.complete, leases)
        try:
            sender.send("a", idempotency_key="k2")
        except psycopg.errors.SerializationFailure:
            assert isolation == "repeatable read"
            sender.rollback()
    assert settle.result() == ["settled"] * 2
    assert third.dequeue() == []


def test_key_used_again_after_its_retention_by_two_senders_makes_one_message(stage: Stage):
    first = keyed(stage.watcher)
    stage.watcher.complete(stage.watcher.take(1))
    forget(stage.watcher)
    one, two = stage.hire(), stage.hire(patient=True)
    with one.open():
        second = keyed(one, 1)
        other = stage.start(keyed, two, 1)
        stage.until_waiting(two, for_whom=one)
    assert other.result() == second
    assert second != first
    assert stage.live() == 1
