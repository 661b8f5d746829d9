"""Consuming and operating in both worlds: each step calls the engine, does the same on paper, and compares answers."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from tests.model import judge
from tests.model.engine import Refusal, json
from tests.model.paper import Channel, Message
from tests.model.sending import Sending

PATIENCE = 60.0
NOBODY = 10**12


class Play(Sending):
    """One step after the other."""

    # Consuming

    def dequeue(self, limit: int, hours: int, channels: list[str] | None, apart: bool = False) -> None:
        if channels is not None and any(name not in self.paper.channels for name in channels):
            got = self.engine.rows(
                "id", "message_dequeue", hours * 3_600_000, limit, [n for n in channels if n not in self.paper.channels]
            )
            # A channel that was released and has gone may still be named: somebody may have sent to it before.
            assert got == [] or got == Refusal("42704")
            if got == []:
                self.paper.tick()
                self.paper.recover()
                self.paper.choose_heads()
            return
        wanted = limit
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.paper.tick()
            self.paper.recover()
            self.paper.choose_heads()
            judge.note_who_waits(self.paper)
            rows = self.engine.dequeue(hours, wanted, channels, apart)
            judge.lease(self.paper, rows, hours, wanted, channels)
            wanted -= len(rows)
            if wanted == 0 or judge.left_over(self.paper, channels) == 0:
                return
            self.compare()
        raise AssertionError(f"{judge.left_over(self.paper, channels)} messages are ready and do not come")

    def next(self, tokens: list[tuple[int, int]], limit: int, hours: int, channels: list[str] | None) -> None:
        """Completes and leases in one call. It may take the short way, which looks at one lane and not at all of it."""
        if channels is not None and any(name not in self.paper.channels for name in channels):
            return
        self.paper.tick()
        expected = {number: self.paper.outcome(number, attempt) for number, attempt in tokens}
        for number, what in expected.items():
            if what == "settled":
                self.paper.end(self.paper.live[number], "completed")
        self.paper.tick()
        self.paper.recover()
        self.paper.choose_heads()
        judge.note_who_waits(self.paper)
        rows, outcomes = self.engine.next(tokens, hours, limit, channels)
        assert outcomes == {number: what for number, what in expected.items() if what != "settled"}
        judge.lease(self.paper, rows, hours, limit, channels, in_order=False)

    def settle(self, kind: str, tokens: list[tuple[int, int]], how: dict[str, Any], scalar: bool) -> None:
        """complete, defer, fail or heartbeat, for tokens that may be wrong."""
        self.paper.tick()
        expected = {number: self.paper.outcome(number, attempt) for number, attempt in tokens}
        call, given = self._settle_call(kind, tokens, how, scalar)
        if scalar:
            got = self.engine._guarded(f"select menzil.{call}", *given)
            [(number, _)] = tokens
            if expected[number] != "settled":
                self.refuses(got, "MZ001" if expected[number] == "stale" else "MZ002")
                return
            outcomes = {number: got or "settled"}
        else:
            outcomes = dict(self.engine._guarded(f"select id, outcome from menzil.{call}", *given, many=True))
        for number, what in expected.items():
            if what == "settled":
                expected[number] = self._settled(kind, self.paper.live[number], how)
        assert outcomes == expected

    def _settle_call(
        self, kind: str, tokens: list[tuple[int, int]], how: dict[str, Any], scalar: bool
    ) -> tuple[str, list[Any]]:
        ids, attempts = [number for number, _ in tokens], [attempt for _, attempt in tokens]
        wait = None if how.get("wait") is None else timedelta(hours=how["wait"])
        extra: dict[str, list[tuple[str, Any]]] = {
            "complete": [],
            "defer": [("timestamptz", self._at(how.get("until"))), ("bytea", how.get("state"))],
            "fail": [("text", how.get("error")), ("interval", wait)],
            "heartbeat": [("bigint", how.get("hours", 1) * 3_600_000)],
        }
        if scalar:
            words = ["%s", "%s"] + [f"%s::{sort}" for sort, _ in extra[kind]]
            return f"message_{kind}({', '.join(words)})", [ids[0], attempts[0], *(value for _, value in extra[kind])]
        if kind == "heartbeat":
            return "message_heartbeat(%s::bigint[], %s::bigint[], %s)", [ids, attempts, extra[kind][0][1]]
        words = ["%s::bigint[]", "%s::bigint[]"] + [f"%s::{sort}[]" for sort, _ in extra[kind]]
        return f"message_{kind}({', '.join(words)})", [ids, attempts, *([value] * len(ids) for _, value in extra[kind])]

    def _settled(self, kind: str, message: Message, how: dict[str, Any]) -> str:
        if kind == "complete":
            self.paper.end(message, "completed")
        elif kind == "defer":
            message.state = how["state"] if how["state"] is not None else message.state
            until = how.get("until")
            due = self.paper.now() if until is None else (self.paper.hour + until, 0)
            self.paper.wait_again(message, due, place=due)
        elif kind == "heartbeat":
            self.paper.keep(message, how["hours"])
        else:
            return self.paper.fail(message, how["error"], how["wait"])
        return "settled"

    # Operating

    def channel_set(self, name: str, limits: dict[str, Any]) -> None:
        channel = self.paper.channels.get(name)
        named = {k: v for k, v in limits.items() if k != "release_hours"}
        named["release_interval_ms"] = limits.get("release_hours", 0) * 3_600_000
        got = self.engine.call("channel_set", name, **named)
        if channel is not None and channel.released:
            self.refuses(got, "55000")
            return
        assert not isinstance(got, Refusal)
        if channel is None:
            channel = self.paper.channels[name] = Channel(name)
            policy = {"max_retries": 3, "backoff": "fixed", "base_delay_seconds": 3600, "max_delay_seconds": 36000}
            self.policy(name, policy)
        if limits.get("release_hours", 0) != channel.release_hours:
            # Leases are counted from the moment there is something to count them for.
            channel.releases = [] if channel.release_hours == 0 else channel.releases
        for word in ("max_concurrency", "max_size", "release_hours", "release_count", "on_dead"):
            setattr(channel, word, limits.get(word, getattr(Channel(""), word)))
        self._forget_turns(name)

    def policy(self, name: str, policy: dict[str, object]) -> None:
        assert not isinstance(self.engine.call("set_retry_policy", name, json(policy)), Refusal)
        self.paper.channels[name].policy = policy

    def pause(self, name: str, paused: bool) -> None:
        got = self.engine.call("channel_pause" if paused else "channel_resume", name)
        if name not in self.paper.channels:
            self.refuses(got, "42704")
            return
        self.paper.channels[name].paused = paused
        self._forget_turns(name)

    def _forget_turns(self, name: str) -> None:
        self.paper.waiting = {lane: since for lane, since in self.paper.waiting.items() if lane[0] != name}

    def release(self, name: str) -> None:
        got = self.engine.call("channel_release", name)
        if name not in self.paper.channels:
            self.refuses(got, "42704")
            return
        self.paper.channels[name].released = True

    def purge(self, name: str) -> None:
        got = self.engine.call("channel_purge", name)
        if name not in self.paper.channels:
            self.refuses(got, "42704")
            return
        waiting = [m for m in self.paper.live.values() if m.channel == name and m.status == "pending"]
        assert got == len(waiting)
        for message in waiting:
            self.paper.end(message, "cancelled")

    def cancel(self, number: int) -> None:
        got = self.engine.call("message_cancel", number)
        message, dead = self.paper.live.get(number), self.paper.dead.get(number)
        if message is None and number not in self.paper.ended:
            self.refuses(got, "42704")
        elif message is not None and message.status == "pending":
            assert got is True
            self.paper.end(message, "cancelled")
        elif dead is not None and dead.blocks:
            assert got is True
            self.paper.dead[number] = type(dead)(dead.channel, dead.ordering_key, blocks=False)
        else:
            assert got is False

    def retry_now(self, number: int) -> None:
        now = self.paper.tick()
        got = self.engine.call("message_retry_now", number)
        message = self.paper.live.get(number)
        if message is None and number not in self.paper.ended:
            self.refuses(got, "42704")
            return
        if message is None or message.status != "pending":
            assert got is False
            return
        if message.due > now:
            assert got is True
        # Due, but perhaps not yet moved by anybody: then the answer may be either.
        if got:
            assert message.scheduled is not None or message.attempts > 0, "it never waited for a time"
            message.due, message.place = now, min(message.place, now)

    def maintain(self) -> None:
        self.paper.tick()
        self.engine.call("maintain")
        self.paper.recover()
        self._expire(leave_postponed=True)
        self.paper.choose_heads()

    def recover(self) -> None:
        self.paper.tick()
        assert self.engine.call("recover_stale_messages") == self.paper.recover()

    def mark_expired(self) -> None:
        self.paper.tick()
        paper = self.paper
        paper.postponed |= {m.id for m in paper.live.values() if m.status == "processing" and paper.expired(m)}
        got = self.engine.call("mark_expired_messages")
        postponed = sum(m.id in paper.postponed and m.status == "pending" for m in paper.live.values())
        assert 0 <= got - self._expire(leave_postponed=True) <= postponed

    def _expire(self, leave_postponed: bool = False) -> int:
        """Ends what expired. What was met in flight is met again a second later: compare() notices its end."""
        late = [m for m in self.paper.live.values() if m.status == "pending" and self.paper.expired(m)]
        late = [m for m in late if not (leave_postponed and m.id in self.paper.postponed)]
        for message in late:
            self.paper.end(message, "expired")
        return len(late)

    def finish(self) -> None:
        """Takes every obstacle away; then every message that is alive comes out, and nothing is left anywhere."""
        for name, channel in list(self.paper.channels.items()):
            if not channel.released:
                self.channel_set(name, {})
            self.pause(name, False)
        self.pass_hours(100)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self.dequeue(100, 1, None)
            self.compare()
            # A lease that has just run out may have been the last try of its message.
            for number in [number for number, dead in self.paper.dead.items() if dead.blocks]:
                self.cancel(number)
            flying = [(m.id, m.attempts) for m in self.paper.live.values() if m.status == "processing"]
            if flying:
                self.settle("complete", flying, {}, scalar=False)
            elif not self.paper.live:
                break
            # A released channel keeps its rate to the end.
            self.pass_hours(5)
        self.compare()
        assert not self.paper.live, "some messages never came"
        self._nothing_is_left()

    def _nothing_is_left(self) -> None:
        self.maintain()
        for table in ("run", "line", "aside", "scheduled", "key_queue", "lease", "withdrawn", "expiring"):
            left = self.engine.run(f"select * from menzil.{table}")
            assert not left, f"{table}: {left}"
        assert self.engine.run("select id from menzil.message m where (menzil._end_of(m.id)).lo_id is null") == []
        assert self.engine.run("select id from menzil.message except select id from menzil.archive") == []
        assert self.engine.run("select id from menzil.archive group by id having count(*) > 1") == []
        assert self.engine.run("select channel_id, in_flight from menzil.gate where in_flight <> 0") == []
        letters = dict(self.engine.run("select original_message_id, blocks_key from menzil.dlq"))
        assert letters == {number: dead.blocks for number, dead in self.paper.dead.items()}
        tries = dict(
            self.engine.run("select message_id, array_agg(attempt order by attempt) from menzil.attempts group by 1")
        )
        expected = {m.id: list(range(1, m.attempts + 1)) for m in self.paper.ended.values() if m.attempts}
        assert tries == expected

    # Looking

    def peek(self, name: str) -> None:
        if name not in self.paper.channels:
            return
        shown = [row.id for row in self.engine.peek(name, 100)]
        mine = [m for m in self.paper.live.values() if m.channel == name]
        may = {m.id for m in mine if self.paper.may_be_leased(m)}
        must = {m.id for m in mine if self.paper.must_be_leased(m)}
        assert must <= set(shown) <= may
        order = sorted((self.paper.live[n] for n in shown), key=lambda m: (-m.priority, m.place, m.id))
        assert shown == [m.id for m in order]

    def status(self, number: int) -> None:
        got = self.engine.rows(
            "status, channel, num_attempts, retry_count, unlock_at, scheduled_at", "message_status", number
        )
        m = self.paper.live.get(number) or self.paper.ended.get(number)
        if m is None:
            self.refuses(got, "42704")
            return
        status, channel, attempts, retries, unlock, scheduled = got[0]
        assert (status, channel, attempts, retries) == (m.status, m.channel, m.attempts, m.retry_count)
        assert self.engine.clock.hour_of(unlock) == (m.unlock[0] if m.unlock else None)
        if m.id in self.paper.live:
            assert self.engine.clock.hour_of(scheduled) == m.scheduled

    # Groups and time

    def begin(self) -> None:
        self.engine.run("begin")
        self.saved = self.paper.copy()

    def commit(self) -> None:
        self.engine.run("commit")
        self.saved = None

    def rollback(self) -> None:
        assert self.saved is not None
        self.engine.run("rollback")
        # What a dequeue looked at and gave back is looked at again a moment later.
        self.engine.clock.rest()
        order, self.paper, self.saved = self.paper.order, self.saved, None
        self.paper.order = order

    def pass_hours(self, hours: int) -> None:
        self.engine.clock.pass_hours(hours)
        self.paper.hour += hours
        self.paper.postponed.clear()
