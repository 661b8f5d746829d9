"""The verdict itself: strangers are blamed for what they do each time, and a busy machine for the rest."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import pytest

from tests.strangers.diary import Gap, Key
from tests.strangers.verdict import AGAIN_AT_MOST, HOLD, PATIENCE, SLOWEST, Held, held_for, judged, relaxed

PLAIN = Key("lease", "plain")


def verdict(gaps: Iterable[float], alone: Iterable[float], *, blames: bool = False) -> tuple[list[str], int]:
    """What is found where the role goes without a success for so long, each time and alone; and how often it was held.

    A gap is cut off where the strangers leave.
    """
    held, by_itself, times = iter(gaps), iter(alone), itertools.count()

    def hold(seconds: float, limits: dict[Key, float]) -> Held:
        next(times)
        gap = Gap(min(next(held), seconds), PLAIN)
        return Held([gap] if gap.seconds > limits.get(PLAIN, PATIENCE) else [], [], blames, ["the evidence"])

    return judged(hold, lambda seconds: {PLAIN: min(next(by_itself), seconds)}, HOLD), next(times)


def for_ever(seconds: float) -> Iterator[float]:
    return itertools.repeat(seconds)


@pytest.mark.parametrize("alone", [0.01, 0.5, 1.4])
def test_standstill_is_named_however_busy_the_machine_is(alone: float):
    assert verdict(for_ever(60), for_ever(alone)) == (
        [str(Gap(held_for(HOLD, relaxed({PLAIN: alone})), PLAIN)), "the evidence"],
        3,
    )


def test_stall_that_comes_each_time_is_named():
    """As that of a command that runs over and over."""
    found, times = verdict(for_ever(1.3), for_ever(0.5))
    assert (found, times) == (["lease plain: 1.30 s without a success", "the evidence"], 1 + AGAIN_AT_MOST)


def test_stall_that_a_lock_explains_is_named_at_once():
    assert verdict([1.3], [], blames=True) == (["lease plain: 1.30 s without a success", "the evidence"], 1)


@pytest.mark.parametrize(
    ("gaps", "alone", "times"),
    [
        ([0.9], [], 1),
        ([1.3, 0.9], [0.1], 2),
        ([1.3, 1.3, 1.3, 0.9], [0.1] * 5, 4),
        ([1.3, 1.3], [0.7], 2),  # it was as busy right before
        ([1.3, 1.3], [0.1, 0.7], 2),  # and right after
        ([60, 60, 0.1], [0.1] * 2, 3),
        ([1.3, 0.9], [SLOWEST + 1, SLOWEST + 1, 0.1], 2),  # the verdict waits until the machine is quieter
    ],
)
def test_stall_of_the_machine_is_not_named(gaps: list[float], alone: list[float], times: int):
    assert verdict(gaps, alone) == ([], times)


def test_error_is_never_the_fault_of_the_machine():
    found = judged(lambda *_: Held([], ["sender: it failed"], False, []), lambda _: {}, HOLD)
    assert found == ["sender: it failed"]


@pytest.mark.parametrize("alone", [0.01, 0.5, 1.4, SLOWEST])
def test_busy_machine_cannot_hide_a_standstill(alone: float):
    """However slow the queue alone is, a stranger is held for longer than the longest gap that is let pass."""
    limits = relaxed({PLAIN: alone, Key("send", "plain"): 0.01})
    assert set(limits.values()) == {PATIENCE, max(PATIENCE, 2 * alone)}
    assert held_for(HOLD, limits) >= max(limits.values()) + HOLD


def test_machine_on_which_the_queue_alone_stalls_gives_no_verdict():
    with pytest.raises(AssertionError, match="too busy"):
        verdict(for_ever(1.3), for_ever(SLOWEST + 0.1))
