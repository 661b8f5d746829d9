"""The views, the status of each message, the counts and the places tell the same story, in every state of the queue."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

CHANNELS = ("work", "other", "narrow", "strict", "hook")
LIVE = ("pending", "processing")


class Play:
    """Does what senders, consumers and operators do, by the dice of one seed."""

    def __init__(self, queue: Queue, seed: int) -> None:
        self.queue, self.dice = queue, random.Random(seed)
        self.sent: list[int] = []
        self.held: list[Any] = []
        queue.call("channel_set", "other")
        queue.call("channel_set", "narrow", 3)
        queue.call("channel_set", "strict", p_on_dead="block", p_max_size=1000)
        queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
        for name, value in (
            ("default_max_retries", "2"),
            ("retry_base_delay", "1"),
            ("circuit_breaker_threshold", "4"),
        ):
            queue.call("set_setting", name, value)

    def step(self) -> None:
        acts: list[Callable[[], None]] = [
            self.send, self.send, self.send_batch, self.dequeue, self.dequeue, self.settle, self.settle, self.settle,
            self.cancel, self.pass_time, self.hurry, self.operate,
        ]  # fmt: skip
        self.dice.choice(acts)()

    def send(self) -> None:
        options: dict[str, Any] = {"priority": self.dice.choice((0, 0, 5))}
        if self.dice.random() < 0.4:
            options["ordering_key"] = self.dice.choice("ab")
        if self.dice.random() < 0.2:
            options["scheduled_at"] = self._in(self.dice.choice((-50, 3, 30)))
        elif self.dice.random() < 0.2:
            options["expires_at"] = self._in(self.dice.choice((5, 40)))
        self.sent.append(self.queue.send(self.dice.choice(CHANNELS), **options))

    def send_batch(self) -> None:
        self.sent += self.queue.send_batch(self.dice.choice(CHANNELS), self.dice.choice((2, 5, 20)))

    def dequeue(self) -> None:
        only = self.dice.choice((None, None, [self.dice.choice(CHANNELS)]))
        self.held += self.queue.dequeue(self.dice.choice((1, 3, 10, 30)), only, self.dice.choice((1000, 60_000)))

    def settle(self) -> None:
        self.dice.shuffle(self.held)
        some = [self.held.pop() for _ in range(min(len(self.held), self.dice.choice((1, 2, 8))))]
        act = self.dice.choice(("complete", "fail", "fail", "defer"))
        for message in some:
            try:
                if act == "complete":
                    self.queue.complete(message)
                elif act == "fail":
                    self.queue.fail(message, self.dice.choice(("later", "[PERMANENT] no", "HTTP 503")))
                else:
                    self.queue.defer(message, self.dice.choice((None, self._in(5))))
            except psycopg.Error as error:
                assert error.sqlstate in ("MZ001", "MZ002")  # noqa: PT017 — the lease ran out on the way

    def cancel(self) -> None:
        for message in self.dice.sample(self.sent, min(3, len(self.sent))):
            self.queue.call("message_cancel", message)

    def pass_time(self) -> None:
        pass_time(self.queue.conn, self.dice.choice((1, 10, 70)))

    def hurry(self) -> None:
        for message in self.sent[-1:]:
            self.queue.call("message_retry_now", message)

    def operate(self) -> None:
        act = self.dice.choice(
            ("channel_pause", "channel_resume", "channel_purge", "mark_expired_messages", "maintain")
        )
        self.queue.call(act, *([self.dice.choice(CHANNELS)] if act.startswith("channel") else []))

    def _in(self, seconds: int) -> Any:
        return self.queue.one("select clock_timestamp() + %s * interval '1 s'", seconds)


def agree(queue: Queue, sent: list[int]) -> None:
    statuses = {message: queue.status(message) for message in sent}
    live = {message: status for message, status in statuses.items() if status.status in LIVE}
    columns = """id, status, channel, num_attempts, retry_count, last_error, created_at, scheduled_at, next_retry_at,
        unlock_at, expires_at"""
    assert {row.id: row for row in queue.all(f"select {columns} from menzil.queue")} == {
        message: status[:-1] for message, status in live.items()
    }
    assert queue.one("select count(*) from menzil.queue") == len(live)
    ended = "id, status, channel, num_attempts, retry_count, last_error, created_at, scheduled_at, expires_at, ended_at"
    assert {row.id: row for row in queue.all(f"select {ended} from menzil.archive")} == {
        message: (*status[:8], *status[10:]) for message, status in statuses.items() if status.status not in LIVE
    }
    for message, status in statuses.items():
        assert whole(queue, message) == apart(queue, message, status.status in LIVE)
    count = Counter((status.channel, status.status) for status in live.values())
    for small in (2**40, 0):
        for row in queue.all("select * from menzil._waiting(100000, clock_timestamp(), %s)", small):
            assert row.count == count[row.name, "pending"]
            assert (row.since_at is None) or row.count > 0
    for name in CHANNELS:
        found = queue.all("select id, status from menzil.queue where channel = %s", name)
        assert Counter(row.status for row in found) == {s: count[name, s] for s in LIVE if count[name, s]}
        flying = queue.all(
            "select f.count from menzil._in_flight((select id from menzil.channels where name = %s)) f", name
        )
        assert [row[0] for row in flying] == [count[name, "processing"]] * (count[name, "processing"] > 0)
    assert queue.one("select in_flight from menzil.channels where name = 'narrow'") == count["narrow", "processing"]
    (hook,) = queue.rows("get_endpoint_health")
    assert (hook.pending_messages, hook.in_flight) == (count["hook", "pending"], count["hook", "processing"])
    oldest = [s.created_at for s in live.values() if (s.channel, s.status) == ("hook", "pending")]
    assert (hook.oldest_pending_message is None) == (not oldest)
    assert not oldest or hook.oldest_pending_message >= min(oldest)
    assert queue.one("select status, detail from menzil.health_check() where check_name = 'places'") == (
        "ok", f"{len(live)} live messages were looked at: each has its place.",
    )  # fmt: skip


SHARED = """id, status, channel, payload, content, priority::integer, ordering_key, idempotency_key, correlation_id,
    headers, metadata, created_at, scheduled_at, expires_at, num_attempts, retry_count, worker, last_error, redrive_of,
    replay_of"""


def whole(queue: Queue, message: int) -> Any:
    times = "next_retry_at, leased_at, unlock_at, ended_at, state, response"
    return queue.one(f"select {SHARED}, {times} from menzil._message_in_full where id = %s", message)


def apart(queue: Queue, message: int, live: bool) -> Any:
    times = "null as next_retry_at, leased_at, null as unlock_at, ended_at, state, response"
    if live:
        times = """next_retry_at, processing_started_at as leased_at, unlock_at, null as ended_at, state,
            null as response"""
    return queue.one(f"select {SHARED}, {times} from menzil.{'queue' if live else 'archive'} where id = %s", message)


@pytest.mark.parametrize("seed", range(4))
def test_views_statuses_counts_and_places_agree(queue: Queue, seed: int) -> None:
    play = Play(queue, seed)
    for step in range(150):
        play.step()
        if step % 6 == 5:
            agree(queue, play.sent)
    assert len(play.sent) > 50


def test_a_filter_by_channel_reads_only_what_belongs_to_the_channel(queue: Queue) -> None:
    for name in ("work", *(f"c{number}" for number in range(60))):
        queue.call("channel_set", name)
        queue.send_batch(name, 20)
        queue.send(name, scheduled_at="2099-01-01")
        queue.send(name, ordering_key="k")
        queue.send(name, ordering_key="k")
    queue.dequeue(1)
    queue.conn.execute("analyze")
    queue.conn.execute("set enable_seqscan = off")
    plan = "\n".join(row[0] for row in queue.all("explain select * from menzil.queue where channel = 'work'"))
    for index in ("run_pkey", "scheduled_channel", "key_queue_pkey"):
        found = re.search(rf"{index} on .*|on {index} .*", plan)
        assert found, plan
        condition = plan[found.end() :].strip().split("\n")[0]
        assert re.search(r"Index Cond: .*channel_id = c\w*\.id", condition), plan
