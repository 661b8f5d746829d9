"""The checker notices every kind of broken promise, and only that: each history here has a twin that keeps it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.torture.broken import Case, ended_and_in_the_queue
from tests.torture.broken_brokers import CASES
from tests.torture.checker import INVARIANTS
from tests.torture.invariants.facts import Violation
from tests.torture.world import World

IDS = [f"{invariant}-{case.__name__}" for invariant, case in CASES]


@pytest.mark.parametrize(("invariant", "case"), CASES, ids=IDS)
def test_a_broken_promise_is_found_and_nothing_else(invariant: str, case: Case) -> None:
    world = World()
    case(world, True)
    found = _of(case, world)
    assert {violation.invariant for violation in found} == {invariant}
    assert str(found[0].subject) in world.story(found[0])


@pytest.mark.parametrize(("invariant", "case"), CASES, ids=IDS)
def test_a_history_that_keeps_the_promise_is_clean(invariant: str, case: Case) -> None:
    world = World()
    case(world, False)
    assert _of(case, world) == []


def _of(case: Case, world: World) -> list[Violation]:
    """A message that ended and is in the queue is of course in the queue: that is not what this case is about."""
    beside = "drained" if case is ended_and_in_the_queue else None
    return [violation for violation in world.judge() if violation.invariant != beside]


def test_every_invariant_has_a_history_that_breaks_it() -> None:
    assert {invariant for invariant, _ in CASES} == set(INVARIANTS)


def test_a_queue_that_took_too_long_to_drain_is_noticed() -> None:
    for seconds, found in ((5.0, []), (6.0, ["drained"])):
        world = World()
        world.note("drained", "runner", seconds=seconds)
        assert [v.invariant for v in world.judge(SimpleNamespace(drain_seconds=5.5, worker_lease=1.0))] == found
    assert [v.invariant for v in World().judge(SimpleNamespace(drain_seconds=5.5))] == ["drained"]


def test_a_story_tells_everything_in_the_order_of_time() -> None:
    world = World()
    world.send("a", id=1)
    world.note("fault", "runner", what="kill_worker", target="worker-1", n=1)
    world.done()
    world.settle(answer="ok")
    world.send("b", id=2)
    (found,) = [violation for violation in world.judge() if violation.invariant == "two_settles"]
    told = world.story(found).splitlines()
    assert told[0] == "two_settles: attempt 1 of message 1 was settled 2 times"
    kinds = [line.split("s  ")[1].split()[1] for line in told[1:] if "database" not in line]
    assert kinds[:3] == ["send.begin", "send.ok", "fault"]
    assert kinds.count("settle.ok") == 2
    assert not any("ref='b'" in line or "ids=[2]" in line for line in told)
