"""Whether a stall is the fault of the strangers or of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.strangers.diary import Gap, Key

#: No role may go without a success for longer, unless the table says that it may wait.
PATIENCE = 1.0
#: How long a stranger stays. Longer than a deep look, a round of chores and PATIENCE together.
HOLD = 2.5

#: How often a stall that no lock explains is tried again: so often if the role stood still all the time that the
#: strangers were held, and so often if it went on in between.
AGAIN, AGAIN_AT_MOST = 2, 5
#: The share of that time that tells a standstill.
STANDSTILL = 0.9
#: A machine on which the queue alone stalls for longer proves nothing. It may be quieter a little later.
SLOWEST = 3.0
QUIETER = 10
#: Seconds within which every role goes on once the strangers have left.
AFTERWARDS = 5 * SLOWEST


class Held(NamedTuple):
    """What was found while strangers were held."""

    stalls: list[Gap]
    faults: list[str]  # what went wrong otherwise
    blames: bool  # whether a session of a role that stalled was seen waiting for one of the strangers
    evidence: list[str]


#: Hold the strangers for some seconds, with limits that differ from PATIENCE.
Hold = Callable[[float, dict[Key, float]], Held]
#: How long each role goes without a success in some seconds beside the same load in another database.
Alone = Callable[[float], dict[Key, float]]


def judged(hold: Hold, alone: Alone, seconds: float) -> list[str]:
    """Return every stall that is the fault of the strangers, the evidence, and what went wrong otherwise.

    A stall that no lock explains may be the machine's fault. Then the same is done again, and compared with the queue
    beside the same load in another database, right before and right after. A stranger that stops a role stops it every
    time, so only roles that stalled each time are named. Errors, and what does not go on afterwards, are never the
    machine's fault.
    """
    found = hold(seconds, {})
    for turn in range(AGAIN_AT_MOST):
        if found.faults or not found.stalls or found.blames:
            break
        limits = relaxed(quiet(alone, max(seconds, HOLD + PATIENCE)))
        longer = held_for(seconds, limits)
        again = hold(longer, limits)
        known = {gap.key for gap in found.stalls}
        stalls = [gap for gap in again.stalls if gap.key in known]
        found = again._replace(stalls=stalls)
        if found.faults or not stalls or found.blames:
            continue
        stood = [gap for gap in stalls if gap.seconds >= STANDSTILL * longer]
        if stood and turn + 1 >= AGAIN:
            found = found._replace(stalls=stood)
            break
        if not stood:
            after = relaxed(quiet(alone, longer))
            found = found._replace(stalls=[gap for gap in stalls if gap.seconds > after.get(gap.key, PATIENCE)])
    return [*map(str, found.stalls), *(found.evidence if found.stalls else ()), *found.faults]


def quiet(alone: Alone, seconds: float) -> dict[Key, float]:
    """What each role takes alone, once the machine lets the queue work at all."""
    for _ in range(QUIETER):
        found = alone(seconds)
        if max(found.values()) <= SLOWEST:
            break
    return found


def relaxed(alone: dict[Key, float]) -> dict[Key, float]:
    """The limit of each role on a busy machine: twice what it takes alone."""
    slow = {key: seconds for key, seconds in alone.items() if seconds > SLOWEST}
    assert not slow, f"this machine is too busy for a verdict: the queue alone went without {slow}"
    return {key: max(PATIENCE, 2 * seconds) for key, seconds in alone.items()}


def held_for(seconds: float, limits: dict[Key, float]) -> float:
    """Longer than every limit: a standstill from the beginning to the end is always noticed."""
    return max(seconds, HOLD + max(limits.values()))
