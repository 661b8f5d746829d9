"""The client against a real database: sending in a business transaction, consuming, and everything else it can do."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

import menzil
from menzil.embedded import Embedded
from menzil.ops import sending
from menzil.ops.choosing import LIBPQ_VARIABLES
from tests.memory import MEMORY


def eventually(found: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def take(mq: menzil.Menzil, lease: float = 30) -> menzil.Message:
    (message,) = mq.dequeue(lease=lease)
    return message


# --- sending ----------------------------------------------------------------------------------------------------------


def test_a_message_is_part_of_the_business_transaction(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        conn.execute("create table orders (id int primary key)")
    with psycopg.connect(db) as conn:
        conn.execute("insert into orders values (42)")
        sent = mq.send("billing", {"order": 42}, ordering_key="customer-7", idempotency_key="order-42", conn=conn)
        assert mq.dequeue() == [], "nobody sees it before the commit"
    message = take(mq)
    assert (message.id, message.payload, message.ordering_key) == (sent, {"order": 42}, "customer-7")
    mq.complete(message)
    assert mq.status(sent).status == "completed"


def test_rolled_back_transaction_sends_nothing(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        sent = mq.send("billing", {"order": 42}, conn=conn)
        mq.send("billing", b"raw", conn=conn)
        mq.send_many([menzil.Send("billing", 1, priority=5)], conn=conn)
        conn.rollback()
    assert mq.dequeue(10) == []
    with pytest.raises(menzil.UnknownNameError):
        mq.status(sent)


def test_a_savepoint_takes_its_messages_with_it(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        mq.send("billing", "kept", conn=conn)
        with conn.transaction(force_rollback=True):
            mq.send("billing", "gone", conn=conn)
    assert [message.payload for message in mq.dequeue(10)] == ["kept"]


@pytest.mark.parametrize(
    "payload", [{}, [], 0, False, "", 1.5, "naïve ☃ 🐎", {"a": [None, {"b": "\\ \" ' \n"}]}, 2**70, "\\u0000"]
)
def test_what_is_sent_arrives(mq: menzil.Menzil, payload: object) -> None:
    mq.send("billing", payload)
    mq.send("billing", payload, priority=1)
    mq.send_batch("billing", [payload])
    mq.send_many([menzil.Send("billing", payload)])
    arrived = mq.dequeue(10)
    assert [message.payload for message in arrived] == [payload] * 4
    assert all(type(message.payload) is type(payload) for message in arrived)


def test_bytes_arrive_as_bytes(mq: menzil.Menzil) -> None:
    body = bytes(range(256))
    mq.send("billing", body)
    message = take(mq)
    assert (message.content, message.body, message.payload) == (body, body, None)


def test_every_option_travels_with_the_message(mq: menzil.Menzil) -> None:
    correlation, later = uuid4(), datetime.now(UTC) + timedelta(hours=1)
    mq.send(
        "billing",
        1,
        priority=7,
        expires_at=later,
        ordering_key="key",
        correlation_id=correlation,
        headers={"X-Tenant": "a"},
        metadata={"trace": [1]},
    )
    message = take(mq)
    assert (message.priority, message.expires_at, message.ordering_key) == (7, later, "key")
    assert (message.correlation_id, message.headers, message.metadata) == (
        correlation,
        {"X-Tenant": "a"},
        {"trace": [1]},
    )
    assert (message.attempt, message.retry_count, message.state) == (1, 0, None)
    assert message.created_at <= datetime.now(UTC) < (message.unlock_at or message.created_at)


def test_delays_are_measured_by_the_clock_of_the_database(mq: menzil.Menzil, db: str) -> None:
    sent = [mq.send("billing", 1, delay=3600), mq.send("billing", b"raw", delay=3600)]
    sent += mq.send_many([menzil.Send("billing", 1, delay=3600, expires_in=7200)])
    with psycopg.connect(db) as conn:
        (now,) = conn.execute("select clock_timestamp()").fetchone() or (None,)
    for message_id in sent:
        due = mq.status(message_id).scheduled_at
        assert due is not None
        assert 3590 < (due - now).total_seconds() <= 3600
    expiry = mq.status(sent[-1]).expires_at
    assert expiry is not None
    assert 7190 < (expiry - now).total_seconds() <= 7200
    assert mq.dequeue(10) == []


def test_send_many_keeps_its_order_and_its_options_apart(mq: menzil.Menzil) -> None:
    mq.channel_set("mail")
    ids = mq.send_many(
        [
            {"channel": "billing", "payload": "low"},
            {"channel": "mail", "payload": "high", "priority": 9, "headers": {"a": "b"}},
            menzil.Send("billing", "later", delay=3600, metadata={"n": 1}),
        ]
    )
    assert ids == sorted(ids)
    assert [(m.id, m.channel, m.payload, m.headers) for m in mq.dequeue(10)] == [
        (ids[1], "mail", "high", {"a": "b"}),
        (ids[0], "billing", "low", None),
    ]


@pytest.mark.parametrize("autocommit", [None, False, True])
def test_a_long_send_many_is_all_or_nothing(
    mq: menzil.Menzil, db: str, monkeypatch: pytest.MonkeyPatch, autocommit: bool | None
) -> None:
    monkeypatch.setattr(sending, "CHUNK", 3)
    good = [menzil.Send("billing", number) for number in range(7)]
    bad = [*good, menzil.Send("nowhere", 1)]
    if autocommit is None:
        with pytest.raises(menzil.UnknownNameError):
            mq.send_many(bad)
        assert len(mq.send_many(good)) == 7
    else:
        with psycopg.connect(db, autocommit=autocommit) as conn:
            with pytest.raises(menzil.UnknownNameError):
                mq.send_many(bad, conn=conn)
            conn.rollback()
            assert len(mq.send_many(good, conn=conn)) == 7
    assert [message.payload for message in mq.dequeue(100)] == list(range(7))


def test_the_same_idempotency_key_is_the_same_message(mq: menzil.Menzil) -> None:
    first = mq.send("billing", {"order": 42}, idempotency_key="order-42")
    assert mq.send("billing", {"order": 42}, idempotency_key="order-42") == first
    assert mq.send_many([menzil.Send("billing", {"order": 42}, idempotency_key="order-42")]) == [first]
    assert len(mq.dequeue(10)) == 1


def test_fast_mode_lasts_as_long_as_the_transaction(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        conn.execute("set synchronous_commit = on")
        conn.commit()
        mq.enable_fast_mode(conn)
        assert conn.execute("show synchronous_commit").fetchone() == ("off",)
        conn.commit()
        assert conn.execute("show synchronous_commit").fetchone() == ("on",)


# --- consuming --------------------------------------------------------------------------------------------------------


def test_a_batch_is_completed_with_one_answer_each(mq: menzil.Menzil) -> None:
    mq.send_batch("billing", range(5))
    batch = mq.dequeue(5)
    mq.complete(batch[0])
    answers = mq.complete_many([*batch, menzil.Lease(10**12, 1)])
    assert [answer.id for answer in answers] == [*[message.id for message in batch], 10**12]
    assert [answer.ok for answer in answers] == [False, True, True, True, True, False]
    assert mq.complete_many([]) == []


def test_a_loop_completes_each_batch_when_it_takes_the_next(mq: menzil.Menzil) -> None:
    sent = mq.send_batch("billing", list(range(25)))
    batch, late = mq.next(limit=10, channels="billing")
    taken: list[menzil.Message] = []
    while batch:
        taken += batch
        assert mq.status(batch[0].id).status == "processing"
        batch, late = mq.next(batch, 10, channels="billing")
        assert late == []
    assert [message.id for message in taken] == sent
    assert [message.payload for message in taken] == list(range(25))
    assert {mq.status(id).status for id in sent} == {"completed"}


def test_a_loop_hears_of_leases_it_lost(mq: menzil.Menzil) -> None:
    sent = mq.send_batch("billing", [1, 2, 3])
    batch, _ = mq.next(limit=2)
    mq.complete(batch[0])
    batch, late = mq.next(batch, 2)
    assert [message.id for message in batch] == sent[2:]
    assert late == [menzil.LeaseOutcome(sent[0], menzil.Settlement.UNKNOWN)]
    batch, late = mq.next([menzil.Lease(batch[0].id, 7)])
    assert (batch, [(one.id, one.ok) for one in late]) == ([], [(sent[2], False)])
    assert mq.status(sent[2]).status == "processing"


def test_a_loop_in_the_callers_transaction_is_undone_by_a_rollback(mq: menzil.Menzil, db: str) -> None:
    sent = mq.send_batch("billing", [1, 2])
    batch, _ = mq.next()
    with psycopg.connect(db) as conn:
        more, _ = mq.next(batch, conn=conn)
        assert [message.id for message in more] == sent[1:]
        conn.rollback()
    assert mq.status(sent[0]).status == "processing"
    assert [message.id for message in mq.next(batch)[0]] == sent[1:]


def test_a_deferred_message_comes_back_with_its_state(mq: menzil.Menzil) -> None:
    mq.send("billing", "long work")
    mq.defer(take(mq), state=b"half\x00way")
    message = take(mq)
    assert (message.state, message.attempt, message.retry_count) == (b"half\x00way", 2, 0)
    mq.defer(message, delay=3600)
    assert mq.dequeue() == []


def test_a_batch_is_deferred_each_in_its_own_way(mq: menzil.Menzil) -> None:
    mq.send_batch("billing", ["now", "later", "tomorrow"])
    batch = {message.payload: message for message in mq.dequeue(3)}
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    answers = mq.defer_many(
        [
            (batch["now"], menzil.Defer(state=b"s")),
            (batch["later"], menzil.Defer(seconds=3600)),
            (batch["tomorrow"], menzil.Defer(until=tomorrow, state=b"")),
        ]
    )
    assert [answer.outcome for answer in answers] == [menzil.Settlement.SETTLED] * 3
    assert [(message.payload, message.state) for message in mq.dequeue(10)] == [("now", b"s")]


def test_a_failure_is_retried_and_a_permanent_one_is_not(mq: menzil.Menzil) -> None:
    sent = mq.send("billing", 1)
    assert mq.fail(take(mq), "no luck", retry_after=0) is menzil.Settlement.RETRY
    message = take(mq)
    assert (message.attempt, message.retry_count) == (2, 1)
    assert mq.fail(message, "hopeless", permanent=True) is menzil.Settlement.DEAD
    status = mq.status(sent)
    assert (status.status, status.attempts, status.ended) == ("failed", 2, True)
    assert "hopeless" in (status.last_error or "")


def test_a_batch_fails_each_in_its_own_way(mq: menzil.Menzil) -> None:
    mq.send_batch("billing", range(3))
    first, second, third = mq.dequeue(3)
    mq.complete(third)
    answers = mq.fail_many(
        [
            (first, menzil.Fail("later", retry=3600)),
            (second, menzil.Fail('bad "quotes" \\ and \x00', retry=False)),
            (third, menzil.Fail("too late")),
        ]
    )
    assert [answer.outcome for answer in answers[:2]] == [menzil.Settlement.RETRY, menzil.Settlement.DEAD]
    assert not answers[2].ok
    assert 'bad "quotes" \\ and \\x00' in (mq.status(second.id).last_error or "")
    retry_at = mq.status(first.id).next_retry_at
    assert retry_at is not None
    assert retry_at > datetime.now(UTC) + timedelta(minutes=55)
    assert mq.retry_now(first.id)
    assert take(mq).id == first.id


def test_a_heartbeat_keeps_the_lease(mq: menzil.Menzil) -> None:
    mq.send_batch("billing", [1, 2])
    batch = mq.dequeue(2, lease=1)
    mq.heartbeat(batch[0], lease=600)
    assert [answer.ok for answer in mq.heartbeat_many(batch, lease=600)] == [True, True]
    unlock_at = mq.status(batch[1].id).unlock_at
    assert unlock_at is not None
    assert unlock_at > datetime.now(UTC) + timedelta(seconds=500)


def test_a_lease_that_ran_out_belongs_to_somebody_else(mq: menzil.Menzil) -> None:
    mq.set_setting("retry_base_delay", 1)
    mq.send("billing", 1)
    mine = take(mq, lease=0.001)
    found: list[menzil.Message] = []
    eventually(lambda: mq.recover_stale() or found.extend(mq.dequeue()) or found)
    eventually(lambda: found or found.extend(mq.dequeue()) or found)
    (theirs,) = found
    assert (theirs.id, theirs.attempt) == (mine.id, 2)
    for settle in (mq.complete, mq.defer, mq.heartbeat, lambda message: mq.fail(message, "late")):
        with pytest.raises(menzil.StaleLeaseError):
            settle(mine)
    assert mq.complete_many([mine])[0].outcome is menzil.Settlement.STALE
    mq.complete(theirs)


def test_dequeue_on_the_callers_connection_is_undone_by_a_rollback(mq: menzil.Menzil, db: str) -> None:
    mq.send("billing", 1)
    with psycopg.connect(db) as conn:
        assert len(mq.dequeue(conn=conn)) == 1
        conn.rollback()
    assert len(mq.dequeue()) == 1


def test_only_the_named_channels_are_served(mq: menzil.Menzil) -> None:
    mq.channel_set("mail")
    mq.send("billing", 1)
    mq.send("mail", 2)
    assert [message.channel for message in mq.dequeue(10, channels="mail", worker="w1")] == ["mail"]
    assert [message.channel for message in mq.dequeue(10, channels=["billing", "mail"])] == ["billing"]


def test_settling_joins_the_callers_transaction(mq: menzil.Menzil, db: str) -> None:
    sent = mq.send("billing", 1)
    message = take(mq)
    with psycopg.connect(db) as conn:
        mq.complete(message, conn=conn)
        conn.rollback()
    assert mq.status(sent).status == "processing"
    mq.complete(message)


def test_a_year_python_does_not_know_spoils_nobody(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.send('billing', '1')")
        # The functions refuse such a time; a row that has it all the same must not spoil its batch.
        conn.execute("update menzil.message set expires_at = '20000-01-01'")
    mq.send("billing", 2)
    batch = mq.dequeue(10)
    assert [message.payload for message in batch] == [1, 2]
    assert batch[0].expires_at == datetime.max.replace(tzinfo=UTC)


def test_a_payload_nested_too_deep_for_python_spoils_nobody(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.send('billing', (repeat('[', 3000) || repeat(']', 3000))::jsonb)")
    mq.send("billing", 2)
    bad, good = mq.dequeue(10)
    assert good.payload == 2
    with pytest.raises(RecursionError):
        _ = bad.payload
    assert mq.fail(bad, "cannot be read", permanent=True) is menzil.Settlement.DEAD


# --- everything else --------------------------------------------------------------------------------------------------


def test_peek_takes_nothing(mq: menzil.Menzil) -> None:
    mq.send_batch("billing", ["a", "b"])
    for _ in range(2):
        assert [message.payload for message in mq.peek("billing")] == ["a", "b"]
    assert len(mq.peek("billing", 1)) == 1
    assert len(mq.dequeue(10)) == 2


def test_a_waiting_message_can_be_cancelled_and_one_in_flight_cannot(mq: menzil.Menzil) -> None:
    waiting, taken = mq.send("billing", 1, delay=3600), mq.send("billing", 2)
    take(mq)
    assert mq.cancel(waiting)
    assert not mq.cancel(taken)
    assert mq.status(waiting).status == "cancelled"


def test_a_channel_is_paused_resumed_purged_and_released(mq: menzil.Menzil) -> None:
    mq.channel_set("mail", max_concurrency=1, max_size=10, release_interval=0.001, release_count=5, on_dead="block")
    mq.channel_pause("mail")
    mq.send("mail", 1)
    assert mq.dequeue() == []
    mq.channel_resume("mail")
    mq.complete(take(mq))
    mq.send_batch("mail", [1, 2])
    assert mq.channel_purge("mail") == 2
    mq.channel_release("mail")
    with pytest.raises((menzil.DisabledError, menzil.UnknownNameError)):
        mq.send("mail", 1)


def test_an_endpoint_lives_from_create_to_drop(mq: menzil.Menzil) -> None:
    config = {"url": "https://example.com/hook"}
    assert mq.validate_endpoint_config("http", config)
    assert mq.create_endpoint("hook", "http", config) > 0
    mq.alter_endpoint("hook", config | {"timeout_seconds": 5})
    mq.set_retry_policy("hook", {"max_retries": 3})
    mq.set_retry_policy("hook", None)
    mq.send("hook", 1)
    assert mq.purge_endpoint("hook") == 1
    mq.disable_endpoint("hook")
    with pytest.raises(menzil.DisabledError):
        mq.send("hook", 1)
    mq.enable_endpoint("hook")
    mq.drop_endpoint("hook")
    with pytest.raises(menzil.UnknownNameError):
        mq.send("hook", 1)


def test_a_schedule_lives_from_create_to_drop(mq: menzil.Menzil) -> None:
    created = mq.schedule_create(
        "nightly", "0 3 * * *", "billing", {"n": 1}, time_zone="Europe/Istanbul", priority=3, expires_after=60
    )
    assert created > 0
    mq.schedule_pause("nightly")
    mq.schedule_resume("nightly")
    assert mq.schedule_fire_due() == 0
    mq.schedule_drop("nightly")
    with pytest.raises(menzil.UnknownNameError):
        mq.schedule_drop("nightly")
    after = datetime(2026, 1, 1, tzinfo=UTC)
    assert mq.cron_next("0 3 * * *", "Europe/Istanbul", after) == datetime(2026, 1, 2, 0, tzinfo=UTC)
    with pytest.raises(menzil.InvalidValueError, match="never comes true"):
        mq.cron_next("0 3 30 2 *", "UTC", after)


def test_messages_leased_apart_are_settled_beside_each_other_in_open_transactions(mq: menzil.Menzil, db: str) -> None:
    mq.send_batch("billing", [1, 2])
    first, second = mq.dequeue(2, apart=True)
    with psycopg.connect(db) as one, psycopg.connect(db, options="-c lock_timeout=20s") as other:
        mq.complete(first, conn=one)
        mq.defer(second, conn=other)  # waits for nothing that `one` holds
        one.rollback()
    assert (mq.status(first.id).status, mq.status(second.id).status) == ("processing", "pending")


def test_settings_and_housekeeping_answer(mq: menzil.Menzil) -> None:
    mq.set_setting("max_payload_size", 2048)
    assert mq.setting("max_payload_size") == "2048"
    assert mq.mark_expired() == 0
    assert mq.recover_stale() == 0
    assert mq.maintain_archive_partitions() >= 0
    mq.maintain()


CONTRACT = """
send send_with_options send_batch send_batch_with_priority send_many message_create enable_fast_mode
message_dequeue message_complete message_defer message_heartbeat message_fail
channel_set channel_pause channel_resume channel_release channel_purge
schedule_create schedule_drop schedule_pause schedule_resume schedule_fire_due cron_next
message_cancel message_status message_peek message_retry_now purge_endpoint
create_endpoint alter_endpoint drop_endpoint enable_endpoint disable_endpoint validate_endpoint_config set_retry_policy
set_setting setting mark_expired_messages recover_stale_messages maintain_archive_partitions maintain
schema_version schema_window copy_notice adopt disown
redrive_message redrive_endpoint redrive_all dlq_summary dlq_causes replay_message replay_range cleanup_dlq
cleanup_attempts cleanup_event_log cleanup_old_archive_partitions archive_completed_messages
create_event_type drop_event_type subscribe unsubscribe publish publish_batch
get_endpoint_health reset_circuit_breaker metrics health_check get_worker_status delivery_configs inbox_claim
"""


def test_every_function_of_the_contract_exists_and_has_its_op(db: str) -> None:
    with psycopg.connect(db) as conn:
        rows = conn.execute("select proname from pg_proc where pronamespace = 'menzil'::regnamespace").fetchall()
    source = "".join(path.read_text() for path in Path(sending.__file__).parent.glob("*.py"))
    called = set(re.findall(r"menzil\.(\w+)\(", source))
    assert set(CONTRACT.split()) <= called
    assert called <= {name for (name,) in rows}


def test_another_json_library_may_be_used(db: str) -> None:
    def dumps(value: object) -> bytes:
        return b'{"wrapped": true}'

    with menzil.Menzil(db, loads=lambda text: ("read", text), dumps=dumps) as mq:
        mq.channel_set("billing")
        mq.send("billing", object())
        assert take(mq).payload == ("read", '{"wrapped": true}')


# --- connections of its own -------------------------------------------------------------------------------------------


def sessions(db: str) -> int:
    with psycopg.connect(db) as conn:
        row = conn.execute(
            "select count(*) from pg_stat_activity where application_name = 'menzil' and datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])


def test_nothing_connects_before_the_first_call_or_stays_after_the_last(db: str) -> None:
    mq = menzil.Menzil(db)
    assert sessions(db) == 0
    mq.channel_set("billing")
    assert sessions(db) == 1
    mq.close()
    eventually(lambda: sessions(db) == 0)
    with pytest.raises(menzil.UsageError, match="closed"):
        mq.send("billing", 1)


def test_many_threads_share_few_connections(db: str) -> None:
    with menzil.Menzil(db, max_connections=2) as mq:
        mq.channel_set("billing")
        threads = [threading.Thread(target=mq.send_batch, args=("billing", range(20))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(mq.dequeue(1000)) == 160
        assert sessions(db) <= 2


def test_the_client_survives_the_end_of_its_connections(mq: menzil.Menzil, db: str) -> None:
    mq.send("billing", 1)
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'menzil'")
    eventually(lambda: sessions(db) == 0)
    assert mq.send("billing", 2) > 0


def test_a_client_made_before_a_fork_works_on_both_sides(mq: menzil.Menzil) -> None:
    mq.send("billing", "before")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            mq.send("billing", "child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    mq.send("billing", "parent")
    assert sorted(message.payload for message in mq.dequeue(10)) == ["before", "child", "parent"]


@pytest.mark.parametrize("times", [3, 4])
def test_a_call_that_met_another_one_is_tried_again_three_times(mq: menzil.Menzil, db: str, times: int) -> None:
    with psycopg.connect(db) as conn:
        conn.execute("create sequence tries")  # what it counts survives the rollback
        conn.execute(
            "create or replace function menzil.maintain() returns void language plpgsql as $$ begin"
            f" if nextval('public.tries') <= {times} then"
            " raise exception using errcode = '40001', message = 'met another one'; end if; end $$"
        )
    if times == 3:
        mq.maintain()
    else:
        with pytest.raises(psycopg.errors.SerializationFailure):
            mq.maintain()


def test_a_database_that_is_repeatable_read_by_default_is_served(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(f"alter database {conn.info.dbname} set default_transaction_isolation = 'repeatable read'")
    with menzil.Menzil(db) as mq:
        mq.channel_set("billing")
        mq.send("billing", 1)
        assert len(mq.dequeue()) == 1


def test_dequeue_in_a_transaction_that_cannot_see_enough_says_so(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(menzil.UsageError, match="READ COMMITTED"):
            mq.dequeue(conn=conn)


# --- without a database of one's own ----------------------------------------------------------------------------------


@pytest.fixture
def embedded_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A data directory for Menzil(), whose server is gone before the directory is."""
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        monkeypatch.setenv("MENZIL_PG_DIR", str(Path(place) / "pg"))
        for name in ("MENZIL_DSN", *LIBPQ_VARIABLES):
            monkeypatch.delenv(name, raising=False)
        yield
        Embedded().start().close(wait=30)


@pytest.mark.usefixtures("embedded_place")
def test_a_client_without_a_dsn_brings_its_own_database() -> None:
    with menzil.Menzil() as mq:
        mq.channel_set("billing")
        with psycopg.connect(mq.dsn) as conn:
            mq.send("billing", {"order": 42}, conn=conn)
        with menzil.Menzil() as other:
            assert [message.payload for message in other.dequeue()] == [{"order": 42}]

    async def awaited() -> None:
        async with menzil.AsyncMenzil() as later:
            assert len(await later.peek("billing")) == 0
            assert (await later.dsn()).startswith("postgresql")

    asyncio.run(awaited())


def test_a_client_without_a_dsn_that_is_never_used_starts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENZIL_PG_DIR", "/nonexistent")
    menzil.Menzil().close()
