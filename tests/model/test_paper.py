"""Random histories of the engine against the queue on paper.

Every step calls one public function of sending, consuming or channels, does the same on paper, and compares the answer
and everything that is alive. Groups of steps are rolled back or committed. At the end every message must come out.
MENZIL_MODEL_EXAMPLES says how many histories, MENZIL_SEED repeats a run.
"""

from __future__ import annotations

import os
from random import SystemRandom
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model import judge
from tests.model.engine import Engine
from tests.model.paper import Channel, Message, Queue
from tests.model.play import NOBODY, Play

EXAMPLES = int(os.environ.get("MENZIL_MODEL_EXAMPLES") or 300)
STEPS = 50
NAMES = ["a", "b", "c"]

names = st.sampled_from(NAMES)
hours = st.sampled_from([None, None, None, -2, 0, 1, 2, 5])
priorities = st.sampled_from([0, 0, 0, 5, 10])
options = st.fixed_dictionaries(
    {"channel": names, "payload": st.integers(0, 1)},
    optional={
        "priority": priorities,
        "scheduled": hours,
        "expires": st.sampled_from([None, None, 1, 2, 4, 8, -1]),
        "ordering_key": st.sampled_from([None, "x", "x", "y"]),
        "idempotency_key": st.sampled_from([None, None, "i", "j"]),
    },
)
_HOURLY = {"backoff": "fixed", "base_delay_seconds": 3600, "max_delay_seconds": 3600}
policies = st.sampled_from(
    [
        {**_HOURLY, "max_retries": 0},
        {**_HOURLY, "max_retries": 2, "backoff": "linear", "increment_seconds": 7200, "max_delay_seconds": 14400},
        {**_HOURLY, "max_retries": 5, "backoff": "exponential", "max_delay_seconds": 10800},
    ]
)
limits = st.fixed_dictionaries(
    {},
    optional={
        "max_concurrency": st.sampled_from([None, 1, 2, 5]),
        "max_size": st.sampled_from([None, None, 3, 8]),
        "release_hours": st.sampled_from([0, 1, 3]),
        "release_count": st.integers(1, 3),
        "on_dead": st.sampled_from(["continue", "block"]),
    },
)
outcomes = st.fixed_dictionaries(
    {
        "until": hours,
        "state": st.sampled_from([None, b"half", b"nearly"]),
        "error": st.sampled_from(["[RETRYABLE] busy", "boom", "[PERMANENT] no", "[PERMANENT] [DISABLE] gone"]),
        "wait": st.sampled_from([None, None, 0, 1, 30]),
        "hours": st.integers(1, 6),
    }
)
picks = st.integers(0, 40)


class Machine(RuleBasedStateMachine):
    """The histories."""

    engine: ClassVar[Engine]

    def __init__(self) -> None:
        super().__init__()
        self.sound = True
        self.engine.clock.start()
        self.play = Play(self.engine)

    @initialize(chosen=st.lists(policies, min_size=3, max_size=3), some=st.lists(limits, max_size=2))
    def make_channels(self, chosen: list[dict[str, object]], some: list[dict[str, Any]]) -> None:
        for name, policy in zip(NAMES, chosen, strict=True):
            self.play.channel_set(name, {})
            self.play.policy(name, policy)
        for name, given in zip(NAMES[1:], some, strict=False):
            self.play.channel_set(name, given)

    def some_id(self, pick: int) -> int:
        known = [*self.play.paper.live, *self.play.ids[-3:], NOBODY]
        return known[pick % len(known)]

    def tokens(self, chosen: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Mostly leases that are held; sometimes an attempt too old or too new, or a message that is not in flight."""
        flying = [m.id for m in self.play.paper.live.values() if m.status == "processing"]
        found = {}
        for pick, shift in chosen:
            number = flying[pick % len(flying)] if flying and pick < 36 else self.some_id(pick)
            message = self.play.paper.live.get(number)
            found[number] = max(0, (message.attempts if message else 1) + shift)
        return list(found.items())

    @rule(given=options)
    def send(self, given: dict[str, Any]) -> None:
        self.sound = False
        self.play.send(given)

    @rule(name=names, count=st.integers(0, 5), priority=priorities)
    def send_batch(self, name: str, count: int, priority: int) -> None:
        self.sound = False
        self.play.send_batch(name, count, priority)

    @rule(messages=st.lists(options, max_size=5), as_json=st.booleans())
    def send_many(self, messages: list[dict[str, Any]], as_json: bool) -> None:
        self.sound = False
        self.play.send_many(messages, as_json)

    @rule(name=names, content=st.binary(max_size=3), scheduled=hours)
    def message_create(self, name: str, content: bytes, scheduled: int | None) -> None:
        self.sound = False
        self.play.create(name, content, scheduled)

    @rule(
        limit=st.sampled_from([1, 1, 2, 3, 10]),
        lock=st.integers(1, 4),
        only=st.none() | st.lists(names, min_size=1, max_size=2),
        apart=st.sampled_from([False, False, True]),
    )
    def dequeue(self, limit: int, lock: int, only: list[str] | None, apart: bool) -> None:
        self.sound = False
        self.play.dequeue(limit, lock, only, apart)

    @rule(
        chosen=st.lists(st.tuples(picks, st.sampled_from([0, 0, 0, 0, -1])), max_size=3),
        all_of_one=st.booleans(),
        limit=st.sampled_from([1, 1, 2, 4]),
        only=st.none() | st.lists(names, min_size=1, max_size=2),
    )
    def next(self, chosen: list[tuple[int, int]], all_of_one: bool, limit: int, only: list[str] | None) -> None:
        self.sound = False
        tokens = self.tokens(chosen)
        if all_of_one:  # a whole lease, as its consumer would settle it
            flying = [m for m in self.play.paper.live.values() if m.status == "processing"]
            tokens = [(m.id, m.attempts) for m in flying if m.batch == flying[0].batch]
        self.play.next(tokens, limit, 3, only)

    @rule(limit=st.sampled_from([1, 2, 5]))
    def dequeue_anything(self, limit: int) -> None:
        self.sound = False
        self.play.dequeue(limit, 3, None)

    @rule(
        chosen=st.lists(picks, min_size=1, max_size=4),
        kind=st.sampled_from(["complete", "fail", "defer", "heartbeat"]),
        how=outcomes,
    )
    def settle_what_is_held(self, chosen: list[int], kind: str, how: dict[str, Any]) -> None:
        self.sound = False
        flying = [(m.id, m.attempts) for m in self.play.paper.live.values() if m.status == "processing"]
        held = {flying[pick % len(flying)] for pick in chosen} if flying else set()
        self.play.settle(kind, sorted(held), how, scalar=False)

    @rule(
        kind=st.sampled_from(["complete", "complete", "defer", "fail", "fail", "heartbeat"]),
        chosen=st.lists(st.tuples(picks, st.sampled_from([0, 0, 0, 0, -1, 1])), max_size=4),
        how=outcomes,
        scalar=st.booleans(),
    )
    def settle(self, kind: str, chosen: list[tuple[int, int]], how: dict[str, Any], scalar: bool) -> None:
        self.sound = False
        tokens = self.tokens(chosen)
        self.play.settle(kind, tokens[:1] if scalar else tokens, how, scalar and bool(tokens))

    @rule(name=names, given=limits)
    def channel_set(self, name: str, given: dict[str, Any]) -> None:
        self.sound = False
        self.play.channel_set(name, given)

    @rule(name=names, paused=st.sampled_from([True, False, False]))
    def pause_or_resume(self, name: str, paused: bool) -> None:
        self.sound = False
        self.play.pause(name, paused)

    @rule(what=st.sampled_from(["cancel", "cancel", "retry_now", "retry_now", "status"]), pick=picks)
    def one_message(self, what: str, pick: int) -> None:
        self.sound = False
        getattr(self.play, what)(self.some_id(pick))

    @rule(what=st.sampled_from(["peek", "peek", "peek", "purge", "release"]), name=names)
    def one_channel(self, what: str, name: str) -> None:
        self.sound = False
        getattr(self.play, what)("c" if what == "release" else name)

    @rule(what=st.sampled_from(["maintain", "recover", "mark_expired"]))
    def janitor(self, what: str) -> None:
        self.sound = False
        getattr(self.play, what)()

    @precondition(lambda self: self.play.saved is None)
    @rule(count=st.sampled_from([1, 1, 2, 5, 30]))
    def hours_pass(self, count: int) -> None:
        self.sound = False
        self.play.pass_hours(count)

    @precondition(lambda self: self.play.saved is None)
    @rule()
    def begin(self) -> None:
        self.play.begin()

    @precondition(lambda self: self.play.saved is not None)
    @rule(keep=st.booleans())
    def end_group(self, keep: bool) -> None:
        self.sound = False
        if keep:
            self.play.commit()
        else:
            self.play.rollback()

    @invariant()
    def both_agree(self) -> None:
        self.play.compare()
        self.sound = True

    def teardown(self) -> None:
        if self.engine.in_transaction():
            self.play.rollback()
        if self.sound:
            self.play.finish()


@pytest.mark.timeout(900)  # a minute alone, several beside other tests
def test_engine_does_what_the_documents_say(db: str) -> None:
    number = int(os.environ.get("MENZIL_SEED") or SystemRandom().randrange(10**9))
    print(f"MENZIL_SEED={number}")
    Machine.engine = Engine(db)
    try:
        run_state_machine_as_test(
            seed(number)(Machine),
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                deadline=None,
                database=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
                print_blob=True,
                report_multiple_bugs=False,
            ),
        )
    finally:
        Machine.engine.close()


def test_channel_over_a_lowered_limit_takes_no_room_from_the_others() -> None:
    paper = Queue()
    for number, name in enumerate(["a", "a", "a", "b"]):
        paper.channels.setdefault(name, Channel(name))
        paper.add(Message(number, name, (0, 0), status="processing" if number < 2 else "pending"))
    paper.channels["a"].max_concurrency = 1
    assert paper.gate(paper.channels["a"]) == 0
    assert judge.left_over(paper, None) == 1
