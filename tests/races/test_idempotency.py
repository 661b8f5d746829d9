"""One idempotency key, several transactions: one message, whoever comes first, and no gap when it ends."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import psycopg
import pytest

from tests.races.actor import Actor
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
def paused(stage: Stage) -> tuple[Actor, Actor]:
    """A sender that stops after it has looked for its key and before it inserts, and who lets it go by committing."""
    stage.watcher.run("""
        create function public.stop_here() returns trigger language plpgsql as $$
        begin
          if current_setting('application_name') = 'stops' then
            perform pg_advisory_xact_lock(4711);
          end if;
          return new;
        end $$;
        create trigger stop_here before insert on menzil.message for each row execute function public.stop_here()""")
    sender, gate = stage.hire(patient=True), stage.hire()
    sender.run("set application_name = 'stops'")
    gate.begin()
    gate.run("select pg_advisory_xact_lock(4711)")
    return sender, gate


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("way", ["send", "send_many"])
def test_send_that_looked_before_its_key_came_and_went_makes_no_second_message(
    stage: Stage, paused: tuple[Actor, Actor], isolation: str, way: str
):
    sender, gate = paused
    late = stage.start(keyed_in, sender, isolation, way)
    stage.until_waiting(sender, for_whom=gate)
    first = keyed(stage.watcher)
    stage.watcher.complete(stage.watcher.take(1))
    gate.commit()
    assert answer(late, sender, isolation) in (first, None)
    assert stage.live() == 0


@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.parametrize("way", ["send", "send_many"])
@pytest.mark.parametrize("end", ["complete", "cancel", "dead", "expire"])
def test_send_that_meets_the_open_end_of_its_key_waits_and_gets_the_ended_message(
    stage: Stage, paused: tuple[Actor, Actor], isolation: str, way: str, end: str
):
    sender, gate = paused
    ender = stage.hire()
    late = stage.start(keyed_in, sender, isolation, way)
    stage.until_waiting(sender, for_whom=gate)
    first = keyed(stage.watcher)
    end_it(ender, first, end)
    gate.commit()
    stage.until_waiting(sender, for_whom=ender)
    ender.commit()
    assert answer(late, sender, isolation) in (first, None)
    assert stage.live() == 0


@pytest.mark.parametrize("way", ["send", "send_many"])
def test_without_retention_a_send_that_meets_the_end_of_its_key_sends_anew(
    stage: Stage, paused: tuple[Actor, Actor], way: str
):
    stage.watcher.run("select menzil.set_setting('idempotency_retention', '0')")
    sender, gate = paused
    ender = stage.hire()
    late = stage.start(keyed, sender, way=way)
    stage.until_waiting(sender, for_whom=gate)
    first = keyed(stage.watcher)
    end_it(ender, first, "complete")
    gate.commit()
    stage.until_waiting(sender, for_whom=ender)
    ender.commit()
    assert late.result() != first
    assert [lease.id for lease in ender.take(1)] == [late.result()]


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
    stage.watcher.run("update menzil.used_key set until_at = now()")
    one, two = stage.hire(), stage.hire(patient=True)
    with one.open():
        second = keyed(one, 1)
        other = stage.start(keyed, two, 1)
        stage.until_waiting(two, for_whom=one)
    assert other.result() == second
    assert second != first
    assert stage.live() == 1
