"""Complete and defer, one by one and in arrays."""

from __future__ import annotations

from datetime import timedelta

from psycopg.types.json import Jsonb

from tests.sql.clock import pass_time
from tests.sql.queue import Queue, ids


def test_a_completed_message_is_gone_from_the_queue_and_in_the_archive(queue: Queue) -> None:
    sent = queue.send()
    message = queue.lease()
    assert queue.call("message_complete", message.id, message.num_attempts) in (None, "")
    assert queue.all("select * from menzil.queue") == []
    assert queue.archived(sent).status == "completed"
    assert queue.dequeue() == []


def test_many_are_completed_in_one_call(queue: Queue) -> None:
    sent = queue.send_batch("work", 20)
    assert queue.complete(*queue.dequeue(20)) == dict.fromkeys(sent, "settled")
    assert queue.one("select count(*) from menzil.archive where status = 'completed'") == 20


def test_a_whole_batch_of_an_endpoint_ends_without_a_look_at_each_message(queue: Queue) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/", "max_concurrency": 20})
    sent = queue.send_batch("hook", 60)
    queue.conn.execute("set track_functions = 'all'")
    taken = queue.dequeue(40, ["hook"])
    assert ids(taken) == sent[:20]  # as many as may be in flight
    looked = "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where funcname = '_take_leases'"
    with queue.conn.transaction():
        assert queue.complete(*taken) == dict.fromkeys(sent[:20], "settled")
        assert queue.one(looked) == 0
    again = queue.dequeue(40, ["hook"])
    assert ids(again) == sent[20:40]  # the slots came back, each once
    assert queue.one("select last_success_at is not null from menzil.get_endpoint_health('hook')")
    with queue.conn.transaction():
        assert queue.complete(*again[:5]) == dict.fromkeys(sent[20:25], "settled")
        assert queue.one(looked) == 1  # a part of a batch is looked up
    assert ids(queue.dequeue(40, ["hook"])) == sent[40:45]
    assert queue.complete(*taken) == dict.fromkeys(sent[:20], "unknown")


def test_the_response_of_a_stale_attempt_is_not_kept(queue: Queue) -> None:
    """One call may hold tokens of two attempts: a worker that gathers results got the message twice."""
    sent = queue.send()
    queue.fail(queue.lease(), retry_after="0")
    assert queue.lease().num_attempts == 2
    answers = [Jsonb({"try": 1}), Jsonb({"try": 2})]
    assert queue.rows("message_complete", [sent, sent], [1, 2], answers) == [(sent, "settled")]
    assert queue.archived(sent).response == {"try": 2}


def test_a_complete_that_is_rolled_back_did_not_happen(queue: Queue) -> None:
    sent = queue.send()
    message = queue.lease()
    with queue.conn.transaction(force_rollback=True):
        queue.complete(message)
    assert queue.status(sent).status == "processing"
    assert queue.complete(message) == {sent: "settled"}


def test_work_and_settle_commit_together(queue: Queue) -> None:
    first = queue.send()
    message = queue.lease()
    with queue.conn.transaction():
        second = queue.send(payload={"after": first})
        queue.complete(message)
    assert queue.lease().id == second


def test_completed_messages_may_leave_no_trace(queue: Queue) -> None:
    queue.call("set_setting", "archive_completed", "false")
    queue.call("channel_set", "limited", 1, 5)
    for channel in ("work", "limited"):
        queue.send(channel, ordering_key="k", idempotency_key="i")
        queue.send(channel, ordering_key="k")
        queue.complete(queue.lease([channel]))
        queue.complete(queue.lease([channel]))
    queue.call("job_run", "completed")
    # A key is kept for its time, and its message with it.
    assert queue.all("select distinct idempotency_key from menzil.message") == [("i",)]
    pass_time(queue.conn, 86_401)
    queue.call("job_run", "completed")
    queue.call("job_run", "completed")
    assert queue.one("select count(*) from menzil.archive") == 0
    assert queue.one("select count(*) from menzil.message") == 0
    dead = queue.send()
    assert queue.fail(queue.lease(), "[PERMANENT] no") == "dead"
    assert queue.archived(dead).status == "failed"


def test_a_deferred_message_waits_in_line_again(queue: Queue) -> None:
    sent = queue.send()
    before = queue.now()
    queue.defer(queue.lease())
    row = queue.status(sent)
    assert (row.status, row.num_attempts, row.retry_count, row.last_error) == ("pending", 1, 0, None)
    assert before <= row.next_retry_at <= queue.now()
    assert queue.lease().num_attempts == 2


def test_a_defer_costs_no_retry(queue: Queue) -> None:
    queue.call("set_setting", "default_max_retries", "1")
    queue.send()
    for _ in range(5):
        queue.defer(queue.lease())
    message = queue.lease()
    assert (message.num_attempts, message.retry_count) == (6, 0)


def test_a_message_deferred_to_a_time_waits_for_it(queue: Queue) -> None:
    sent = queue.send()
    at = queue.now() + timedelta(seconds=30)
    queue.defer(queue.lease(), at)
    assert queue.status(sent).next_retry_at == at
    assert queue.dequeue() == []
    pass_time(queue.conn, 31)
    assert queue.lease().id == sent


def test_state_saved_by_a_defer_comes_with_the_next_lease(queue: Queue) -> None:
    queue.send()
    message = queue.lease()
    assert message.state is None
    queue.defer(message, state=b"\x00half way")
    message = queue.lease()
    assert message.state == b"\x00half way"
    queue.defer(message)
    message = queue.lease()
    assert message.state == b"\x00half way"
    queue.defer(message, state=b"")
    message = queue.lease()
    assert message.state == b""
    queue.complete(message)
    assert queue.archived(message.id).state == b""


def test_state_survives_a_failure_and_a_lost_lease(queue: Queue) -> None:
    queue.send()
    queue.defer(queue.lease(), state=b"kept")
    queue.fail(queue.lease(), retry_after="0")
    queue.lease()
    pass_time(queue.conn, 61)
    assert queue.lease().state == b"kept"


def test_many_are_deferred_in_one_call(queue: Queue) -> None:
    sent = queue.send_batch("work", 3)
    queue.dequeue(3)
    at = queue.now() + timedelta(seconds=30)
    rows = queue.all(
        "select * from menzil.message_defer(%s::bigint[], array[1, 1, 1]::bigint[], %s::timestamptz[], %s::bytea[])",
        sent,
        [at, None, None],
        [None, b"two", None],
    )
    assert sorted(rows) == [(message, "settled") for message in sent]
    assert [(message.id, message.state) for message in queue.dequeue(10)] == [(sent[1], b"two"), (sent[2], None)]
    pass_time(queue.conn, 31)
    assert ids(queue.dequeue(10, lock_ms=10)) == [sent[0]]


def test_a_cooperative_task_lets_others_run_in_a_narrow_channel(queue: Queue) -> None:
    queue.call("channel_set", "narrow", 1)
    long, short = queue.send("narrow", {"steps": 3}), queue.send("narrow", {"steps": 1})
    served = []
    while taken := queue.dequeue(5, ["narrow"]):
        (message,) = taken
        done = int(message.state or b"0") + 1
        served.append(message.id)
        if done == message.payload["steps"]:
            queue.complete(message)
        else:
            queue.defer(message, state=str(done).encode())
    assert served == [long, short, long, long]


def test_a_repeating_message_drives_work_and_never_ends(queue: Queue) -> None:
    queue.call("channel_set", "ticks")
    tick = queue.send("ticks", {"every": "60 seconds"})
    made = []
    for round_number in range(3):
        message = queue.lease(["ticks"])
        assert (message.id, message.num_attempts, message.retry_count) == (tick, round_number + 1, 0)
        with queue.conn.transaction():
            made.append(queue.send("work", {"round": round_number}))
            queue.defer(message, queue.one("select now() + interval '60 seconds'"))
        assert queue.dequeue(5, ["ticks"]) == []
        pass_time(queue.conn, 61)
    # A worker that dies with the tick in its hands does not end the series.
    queue.lease(["ticks"])
    pass_time(queue.conn, 61)
    assert queue.lease(["ticks"]).id == tick
    assert ids(queue.dequeue(10, ["work"])) == made
