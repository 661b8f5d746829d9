"""The roles at work: senders, consumers, a worker, watchers. Each is a thread with a connection and a login of its own.

Each does the same few calls over and over, and notes every success in the diary. Beside them a real worker runs, in a
process of its own.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from tests.strangers.diary import Diary
from tests.strangers.process import HANDLED, NAME, WorkerProcess

#: Channels and what is set on them. An ordinary neighbourhood: limits, rates, keys, schedules, expiries.
PLAIN = {
    "plain": "null",
    "graded": "null",
    "limited": "8",
    "rated": "null, null, 100, 40",
    "sized": "null, 100000",
    "keyed": "null",
    "timed": "null",
    "expiring": "null",
    "single": "null",
}
WATCHES = ("metrics", "health_check", "get_endpoint_health")
LOOKS = ("channel_state", "turns")
TOLD = {  # of one message
    "message_why": "select * from menzil.message_why(%s)",
    "message_life": "select * from menzil.message_life(%s)",
}
SETTLES = ("complete", "fail", "defer", "heartbeat", "bury")
HOOKS = {"hook": {}, "narrow_hook": {"max_concurrency": 8}}

_OPTIONS = {
    "graded": "p_priority => %(n)s %% 11",
    "keyed": "p_ordering_key => 'k' || %(n)s %% 5",
    "timed": "p_scheduled_at => clock_timestamp() + interval '30 ms'",
    # Every tenth one expires while it waits.
    "expiring": "p_expires_at => clock_timestamp() + case when %(n)s %% 10 = 0 then 1 else 60000 end * interval '1 ms'",
    "single": "p_idempotency_key => 'once' || %(n)s",
}
_LEASES = "select id, channel, num_attempts, batch from menzil.message_dequeue(30000, %s, %s, %s, %s)"
_COMPLETE = "select outcome from menzil.message_complete(%s::bigint[], %s::bigint[], null, %s::bigint[])"
_FAIL = "select outcome from menzil.message_fail(%s::bigint[], %s::bigint[], %s, %s::interval[])"

#: The sessions that do what a role stands for.
SESSIONS = {
    "send": ("sender", "batch sender", "careful sender"),
    "dequeue": ("consumer", "second consumer", "worker", "settler"),
    "lease": ("consumer", "second consumer"),
    "deliver": ("worker",),
    "settle": ("settler",),
    "jobs": ("jobs",),
    "watch": ("watcher", "careful watcher", "looker", "teller", "asker"),
    "cancel": ("canceller",),
    "work": (NAME,),
}
#: Leases that the settler has in hand.
STOCK = 400

Ask = Callable[..., list[Any]]


def _settle_one(ask: Ask, number: int, attempt: int, way: str) -> None:
    if way == "heartbeat":
        ask("select menzil.message_heartbeat(%s, %s, 60000)", number, attempt)
    if way in ("heartbeat", "complete"):
        ask("select menzil.message_complete(%s, %s)", number, attempt)
    elif way == "fail":
        ask(_FAIL, [number], [attempt], ["[RETRYABLE] not now"], ["0 s"])
    elif way == "defer":
        ask("select menzil.message_defer(%s, %s)", number, attempt)
    else:
        ask(_FAIL, [number], [attempt], ["[PERMANENT] never"], ["0 s"])


class Crowd:
    """Threads that work until they are told to stop. `channels` and `hooks` may grow while they do."""

    def __init__(self, dsns: dict[str, str]) -> None:
        self.diary = Diary()
        self.channels = list(PLAIN)
        self.hooks = list(HOOKS)
        self._dsns = dsns
        self._last = 0
        self._stock: deque[tuple[int, int]] = deque()
        self._stopping = threading.Event()
        roles: list[tuple[str, str, Callable[[Ask], None], float]] = [
            ("sender", "application", self._send, 0.08),
            ("batch sender", "application", self._send_batches, 0.1),
            ("careful sender", "careful_application", self._send_carefully, 0.1),
            ("consumer", "worker", self._consume, 0.03),
            ("second consumer", "worker", self._consume_singly, 0.08),
            ("worker", "worker", self._deliver, 0.05),
            ("settler", "worker", self._settle, 0.2),
            ("jobs", "worker", self._do_jobs, 0.08),
            ("watcher", "monitor", self._watch, 0.2),
            ("careful watcher", "careful_monitor", self._watch_carefully, 0.2),
            ("looker", "monitor", self._look, 0.2),
            ("teller", "monitor", self._tell, 0.2),
            ("asker", "application", self._ask_status, 0.05),
            ("canceller", "application", self._cancel, 0.1),
        ]
        self._numbers = itertools.count(1)
        self._worker = WorkerProcess(dsns["worker"], self.diary)
        self._threads = [threading.Thread(target=self._work, args=role, name=role[0], daemon=True) for role in roles]

    def start(self) -> None:
        self._worker.start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(30)
        self._worker.stop()

    def expected(self) -> list[tuple[str, str]]:
        """What must succeed again and again."""
        places = {
            "send": [*self.channels, *self.hooks, "batch", "many", "repeatable read"],
            "dequeue": ["consumer", "second consumer", "worker", "settler"],
            "lease": self.channels,
            "deliver": self.hooks,
            "settle": SETTLES,
            "jobs": ["round"],
            "watch": [*WATCHES, *(f"{watch}, repeatable read" for watch in WATCHES), *LOOKS, *TOLD, "message_status"],
            "cancel": ["plain"],
            "work": HANDLED,
        }
        return [(role, place) for role, names in places.items() for place in names]

    def _work(self, name: str, role: str, act: Callable[[Ask], None], pause: float) -> None:
        while not self._stopping.is_set():
            try:
                with psycopg.connect(self._dsns[role], autocommit=True, application_name=name) as conn:
                    self._go_on(conn, act, pause)
            except psycopg.Error as error:
                self.diary.fail(name, error)
                time.sleep(0.1)

    def _go_on(self, conn: psycopg.Connection[Any], act: Callable[[Ask], None], pause: float) -> None:
        def ask(text: str, *params: Any) -> list[Any]:
            given = params[0] if len(params) == 1 and isinstance(params[0], dict) else params
            cursor = conn.execute(text, given or None)
            return cursor.fetchall() if cursor.description else []

        while not self._stopping.is_set():
            act(ask)
            time.sleep(pause)

    def _send(self, ask: Ask) -> None:
        for channel in [*self.channels, *self.hooks, *HANDLED, *HANDLED]:
            number = next(self._numbers)
            options = _OPTIONS.get(channel)
            if options is None:
                self._last = ask("select menzil.send(%s, '{}')", channel)[0][0]
            else:
                text = f"select menzil.send_with_options(%(channel)s, '{{}}', {options})"
                self._last = ask(text, {"channel": channel, "n": number})[0][0]
            self.diary.note("send", channel)

    def _send_batches(self, ask: Ask) -> None:
        ask("select menzil.send_batch('stock', array['1', '2', '3', '4']::jsonb[])")
        self.diary.note("send", "batch")
        ask("select menzil.send_many(%s::jsonb)", Jsonb([{"endpoint": c, "payload": 1} for c in ("plain", "sized")]))
        self.diary.note("send", "many")

    def _send_carefully(self, ask: Ask) -> None:
        """By a role whose transactions are REPEATABLE READ unless they say otherwise."""
        ask("select menzil.send('plain', '{}')")
        self.diary.note("send", "repeatable read")

    def _lease(self, ask: Ask, limit: int, channels: list[str] | None, worker: str, endpoints: bool) -> list[Any]:
        leases = ask(_LEASES, limit, channels, worker, endpoints)
        self.diary.note("dequeue", worker)
        for _, channel, _, _ in leases:
            self.diary.note("deliver" if endpoints else "lease", channel)
        return leases

    def _consume(self, ask: Ask) -> None:
        leases = self._lease(ask, 30, list(self.channels), "consumer", False)
        if leases:
            ids, _, attempts, batches = (list(column) for column in zip(*leases, strict=True))
            ask(_COMPLETE, ids, attempts, batches)

    def _consume_singly(self, ask: Ask) -> None:
        """Named channels or all; some are tried again, some die."""
        named = next(self._numbers) % 2
        leases = self._lease(ask, 5, list(self.channels) if named else None, "second consumer", False)
        for (number, _, attempt, _), way in zip(leases, SETTLES, strict=True) if len(leases) == 5 else ():
            _settle_one(ask, number, attempt, way)
        for number, _, attempt, _ in leases if len(leases) < 5 else ():
            _settle_one(ask, number, attempt, "complete")

    def _deliver(self, ask: Ask) -> None:
        """What a worker asks the database for while it delivers."""
        for number, channel, attempt, _ in self._lease(ask, 20, None, "worker", True):
            if channel.startswith("gone"):
                ask(_FAIL, [number], [attempt], ["[PERMANENT] [DISABLE] HTTP 410: gone"], [None])
                self.diary.note("settle", "gone")
            else:
                _settle_one(ask, number, attempt, "bury" if number % 7 == 0 else "complete")
        ask("select menzil.worker_wait()")

    def _settle(self, ask: Ask) -> None:
        """Settles from a stock of leases: a settle must go on also while no lane can be dequeued from."""
        if len(self._stock) < STOCK:
            text = (
                "select id, num_attempts from menzil.message_dequeue(600000, 20, '{stock}', 'settler', p_apart => true)"
            )
            self._stock.extend(ask(text))
            self.diary.note("dequeue", "settler")
        else:
            ask("select * from menzil.message_dequeue(600000, 1, '{idle}', 'settler')")
            self.diary.note("dequeue", "settler")
        for way in SETTLES:  # one after the other: none of them waits for five rounds
            if self._stock:
                _settle_one(ask, *self._stock.popleft(), way)
                self.diary.note("settle", way)

    def _do_jobs(self, ask: Ask) -> None:
        """As a worker does: claim and round are transactions of their own."""
        name = ask("select menzil.job_claim('jobs')")[0][0]
        if name is not None:
            ask("select menzil.job_run(%s)", name)
        self.diary.note("jobs", "round")

    def _watch(self, ask: Ask, how: str = "") -> None:
        for function in WATCHES:
            ask(f"select * from menzil.{function}()")
            self.diary.note("watch", function + how)

    def _look(self, ask: Ask) -> None:
        for function in LOOKS:
            ask(f"select * from menzil.{function}()")
            self.diary.note("watch", function)
        self._tell_of_last(ask, "message_why")

    def _tell(self, ask: Ask) -> None:
        """A session of its own: this function reads the event log, the others do not have to."""
        self._tell_of_last(ask, "message_life")

    def _tell_of_last(self, ask: Ask, function: str) -> None:
        if self._last:
            ask(TOLD[function], self._last)
            self.diary.note("watch", function)

    def _watch_carefully(self, ask: Ask) -> None:
        self._watch(ask, ", repeatable read")

    def _ask_status(self, ask: Ask) -> None:
        if self._last:
            ask("select * from menzil.message_status(%s)", self._last)
            self.diary.note("watch", "message_status")

    def _cancel(self, ask: Ask) -> None:
        text = "select menzil.send_with_options('plain', '{}', p_scheduled_at => clock_timestamp() + interval '1 min')"
        ask("select menzil.message_cancel(%s)", ask(text)[0][0])
        ask("select menzil.message_cancel(%s)", ask("select menzil.send('plain', '{}')")[0][0])
        self.diary.note("cancel", "plain")
