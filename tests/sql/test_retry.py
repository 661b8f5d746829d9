"""Failures: how long a message waits, when it is dead, and what its history tells."""

from __future__ import annotations

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import pass_time
from tests.sql.queue import Queue, ids


def delays(queue: Queue, count: int, channel: str = "work") -> list[float]:
    """Fail one message so many times and measure how long it would have waited."""
    sent = queue.send(channel)
    waits = []
    for _ in range(count):
        message = queue.lease([channel])
        assert queue.fail(message) == "retry"
        failed_at = queue.one("select max(ended_at) from menzil.attempts where message_id = %s", sent)
        waits.append((queue.status(sent).next_retry_at - failed_at).total_seconds())
        pass_time(queue.conn, waits[-1] + 1)
    assert queue.call("message_cancel", sent)
    return waits


def policy(queue: Queue, **words: object) -> None:
    queue.one("select menzil.set_retry_policy('work', %s)", Jsonb(words))


def test_delays_double_from_ten_seconds_to_five_minutes(queue: Queue) -> None:
    assert delays(queue, 8) == [10, 20, 40, 80, 160, 300, 300, 300]


def test_linear_delays_grow_by_the_increment(queue: Queue) -> None:
    policy(queue, backoff="linear", max_retries=20)
    assert delays(queue, 12) == [10, 40, 70, 100, 130, 160, 190, 220, 250, 280, 300, 300]


def test_fixed_delays_stay_the_same(queue: Queue) -> None:
    policy(queue, backoff="fixed")
    assert delays(queue, 4) == [10, 10, 10, 10]


def test_a_channel_has_a_policy_of_its_own(queue: Queue) -> None:
    queue.call("channel_set", "other")
    policy(
        queue,
        max_retries=20,
        backoff="linear",
        base_delay_seconds=5,
        max_delay_seconds=60,
        increment_seconds=15,
    )
    assert delays(queue, 6) == [5, 20, 35, 50, 60, 60]
    assert delays(queue, 2, "other") == [10, 20]


def test_the_longest_delay_of_the_settings_does_not_shorten_the_base_of_a_policy(queue: Queue) -> None:
    policy(queue, backoff="fixed", base_delay_seconds=3600)
    assert delays(queue, 3) == [3600, 3600, 3600]
    policy(queue, base_delay_seconds=200)
    assert delays(queue, 3) == [200, 300, 300]
    policy(queue, base_delay_seconds=600)
    assert delays(queue, 3) == [600, 600, 600]


def test_the_settings_change_the_delays(queue: Queue) -> None:
    queue.call("set_setting", "retry_base_delay", "3")
    queue.call("set_setting", "retry_max_delay", "10")
    assert delays(queue, 4) == [3, 6, 10, 10]
    queue.call("set_setting", "retry_increment", "1")
    policy(queue, backoff="linear")
    assert delays(queue, 3) == [3, 4, 5]


def test_the_policy_is_the_one_at_the_time_of_the_failure(queue: Queue) -> None:
    queue.send()
    message = queue.lease()
    policy(queue, max_retries=0)
    assert queue.fail(message) == "dead"


def test_an_endpoint_takes_its_policy_by_update_as_in_the_documentation(queue: Queue) -> None:
    queue.call("create_endpoint", "my-api", "http", {"url": "https://api.example.com/webhook"})
    queue.conn.execute(
        """update menzil.endpoints set retry_policy = '{"max_retries": 20, "backoff": "linear", "base_delay_seconds": 5,
             "max_delay_seconds": 600, "increment_seconds": 15}'::jsonb where name = 'my-api'"""
    )
    assert delays(queue, 4, "my-api") == [5, 20, 35, 50]


@pytest.mark.parametrize(("after", "seconds"), [("7 seconds", 7), ("0", 0), ("1 day", 86_400), ("3 days", 86_400)])
def test_the_other_side_may_say_when_to_try_again(queue: Queue, after: str, seconds: int) -> None:
    sent = queue.send()
    assert queue.fail(queue.lease(), retry_after=after) == "retry"
    failed_at = queue.one("select ended_at from menzil.attempts")
    assert queue.status(sent).next_retry_at - failed_at == timedelta(seconds=seconds)


def test_a_consumer_of_a_plain_channel_decides_for_itself_whatever_the_error_says(queue: Queue) -> None:
    sent = queue.send()
    assert queue.fail(queue.lease(), "HTTP 503 Service Unavailable", retry_after="2 s") == "retry"
    failed_at = queue.one("select ended_at from menzil.attempts")
    assert queue.status(sent).next_retry_at - failed_at == timedelta(seconds=2)


def test_a_wait_may_be_a_fraction_of_a_second_more(queue: Queue) -> None:
    sent = queue.send()
    message = queue.lease()
    assert queue.one("select menzil.message_fail(%s, 1, 'no', make_interval(secs => 2.5))", message.id) == "retry"
    failed_at = queue.one("select ended_at from menzil.attempts")
    assert queue.status(sent).next_retry_at - failed_at == timedelta(seconds=2.5)


@pytest.mark.parametrize("wait", ["NULL", "'5 seconds'", "p_retry_after => NULL"])
def test_a_wait_may_be_typed_as_in_the_documentation(queue: Queue, wait: str) -> None:
    queue.send()
    message = queue.lease()
    assert queue.one(f"select menzil.message_fail({message.id}, 1, 'no', {wait})") == "retry"


def test_max_retries_counts_the_tries_after_the_first(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "2")
    sent = queue.send()
    outcomes = []
    while taken := queue.dequeue():
        outcomes.append(queue.fail(taken[0], retry_after="0"))
    assert outcomes == ["retry", "retry", "dead"]
    assert queue.status(sent).status == "failed"


def test_with_no_retries_the_first_failure_is_the_last(queue: Queue) -> None:
    policy(queue, max_retries=0)
    queue.send()
    assert queue.fail(queue.lease()) == "dead"


def test_the_default_budget_is_ten_retries(queue: Queue) -> None:
    queue.send()
    outcomes = []
    while taken := queue.dequeue():
        outcomes.append(queue.fail(taken[0], retry_after="0"))
    assert outcomes == ["retry"] * 10 + ["dead"]


@pytest.mark.parametrize("error", ["[PERMANENT] 404", "[PERMANENT] [DISABLE] 410", "[DISABLE] 410"])
def test_a_permanent_error_is_dead_at_once(queue: Queue, error: str) -> None:
    sent = queue.send(payload={"a": 1}, headers={"X-A": "1"}, metadata={"m": 1}, ordering_key="k", idempotency_key="i")
    assert queue.fail(queue.lease(), error) == "dead"
    assert queue.waiting() == []
    row = queue.one("select * from menzil.dlq")
    assert (row.original_message_id, row.status, row.last_error) == (sent, "failed", error)
    assert (row.payload, row.headers, row.metadata) == ({"a": 1}, {"X-A": "1"}, {"m": 1})
    assert (row.ordering_key, row.idempotency_key, row.num_attempts) == ("k", "i", 1)
    assert queue.archived(sent).status == "failed"


@pytest.mark.parametrize("error", ["[RETRYABLE] 503", "no class", "", "said [PERMANENT] in the middle", "[permanent]"])
def test_any_other_error_is_tried_again(queue: Queue, error: str) -> None:
    sent = queue.send()
    assert queue.fail(queue.lease(), error) == "retry"
    assert queue.status(sent).last_error == error


def test_a_failed_message_shows_its_retry_in_the_queue(queue: Queue) -> None:
    queue.send()
    queue.fail(queue.lease())
    row = queue.one("select status, num_attempts, retry_count, last_error, next_retry_at from menzil.queue")
    assert row[:4] == ("pending", 1, 1, "[RETRYABLE] It did not work.")
    assert row.next_retry_at > queue.now()


def test_a_very_long_error_is_cut(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.lease(), "x" * 1_000_000)
    assert len(queue.status(sent).last_error) == 8192


def test_many_fail_in_one_call_each_in_its_own_way(queue: Queue) -> None:
    sent = queue.send_batch("work", 3)
    queue.dequeue(3)
    rows = queue.all(
        "select * from menzil.message_fail(%s::bigint[], array[1, 1, 7]::bigint[], %s, %s::interval[])",
        sent,
        ["[PERMANENT] a", "b", "c"],
        [None, timedelta(seconds=99), None],
    )
    assert sorted(rows) == [(sent[0], "dead"), (sent[1], "retry"), (sent[2], "stale")]
    assert queue.all("select message_id, error from menzil.attempts order by 1") == [
        (sent[0], "[PERMANENT] a"),
        (sent[1], "b"),
    ]


def test_the_history_tells_every_try(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.dequeue(worker="one")[0], "first", retry_after="0")
    queue.defer(queue.dequeue(worker="two")[0])
    queue.dequeue(worker="three")
    pass_time(queue.conn, 61)
    queue.complete(queue.dequeue(worker="four")[0])
    rows = queue.all("select * from menzil.attempts where message_id = %s order by attempt", sent)
    assert [(row.attempt, row.outcome, row.worker, row.channel) for row in rows] == [
        (1, "failed", "one", "work"),
        (2, "deferred", "two", "work"),
        (3, "recovered", "three", "work"),
        (4, "completed", "four", "work"),
    ]
    assert [row.error for row in rows][:2] == ["first", None]
    assert "lease" in rows[2].error
    assert rows[3].error is None
    assert all(row.leased_at <= row.ended_at for row in rows)


def test_a_dead_letter_keeps_its_last_try_in_the_history(queue: Queue) -> None:
    sent = queue.send()
    queue.fail(queue.lease(), "[PERMANENT] no")
    assert queue.all("select message_id, attempt, outcome, error from menzil.attempts") == [
        (sent, 1, "failed", "[PERMANENT] no")
    ]


def test_messages_that_died_together_are_listed_in_the_order_they_were_sent(queue: Queue) -> None:
    sent = queue.send_batch("work", 4)
    taken = queue.dequeue(4)[::-1]
    queue.all(
        "select * from menzil.message_fail(%s::bigint[], array[1, 1, 1, 1]::bigint[], %s)",
        ids(taken),
        ["[PERMANENT]"] * 4,
    )
    assert [row.original_message_id for row in queue.all("select * from menzil.dlq order by id")] == sent


def test_jitter_only_shortens_the_delay(queue: Queue) -> None:
    policy(queue, backoff="fixed", base_delay_seconds=100, jitter=True, max_retries=100)
    waits = delays(queue, 8)
    assert all(50 <= wait <= 100 for wait in waits)
    assert len(set(waits)) > 1


@pytest.mark.parametrize("key", ["base_delay_seconds", "max_delay_seconds", "increment_seconds", "jitter"])
def test_a_number_too_small_for_a_double_in_a_policy_keeps_no_message_from_failing(queue: Queue, key: str) -> None:
    tiny = {"base_delay_seconds": "0", "backoff": '"linear"', key: "1e-400"}
    text = ", ".join(f'"{name}": {value}' for name, value in tiny.items())
    queue.conn.execute("select menzil.set_retry_policy('work', %s::jsonb)", ["{" + text + "}"])
    queue.send()
    assert queue.fail(queue.lease()) == "retry"
