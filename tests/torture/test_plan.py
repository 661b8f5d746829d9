"""One seed decides what a run does, and everything that can go wrong does come up."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.torture.plan import FAULTS, RECOVERY, RESTARTS, Plan

SEEDS = (1, 7, 20261116)


def sent(plan: Plan) -> list[object]:
    return [plan.op(sender, number) for sender in range(plan.senders) for number in range(60)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_sends_the_same_messages_and_strikes_at_the_same_times(seed: int) -> None:
    assert sent(Plan(seed)) == sent(Plan(seed))
    assert Plan(seed).schedule == Plan(seed).schedule
    assert Plan(seed).schedule != Plan(seed + 1).schedule
    assert sent(Plan(seed)) != sent(Plan(seed + 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_plan_has_as_many_faults_as_it_was_asked_for_and_lets_the_server_recover(seed: int) -> None:
    schedule = Plan(seed, faults=500, sends=100_000).schedule
    assert len(schedule) == 500
    assert {fault.what for fault in schedule} == FAULTS.keys()
    restarts = [fault.at for fault in schedule if fault.what in RESTARTS]
    assert min(second - first for first, second in pairwise(restarts)) >= RECOVERY


@pytest.mark.parametrize("seed", SEEDS)
def test_a_key_is_repeated_while_its_message_lives_after_it_ended_and_for_something_else(seed: int) -> None:
    plan = Plan(seed)
    firsts: dict[tuple[str, str | None], tuple[int, str]] = {}
    ways, other = set(), 0
    for number in range(800):
        for item in plan.op(0, number).items:
            if item.idem is None:
                continue
            first, ref = firsts.setdefault((item.channel, item.idem), (number, item.ref))
            if ref != item.ref:
                other += 1
            elif first != number:
                ways.add(number - first)
    assert other > 0
    assert min(ways) < 10
    assert max(ways) > 100


@pytest.mark.parametrize("seed", SEEDS)
def test_every_way_of_sending_comes_up(seed: int) -> None:
    plan = Plan(seed)
    ops = [plan.op(1, number) for number in range(800)]
    assert {(op.way, op.by, op.own) for op in ops} == {
        (way, by, own) for way in ("single", "batch", "many") for by in ("client", "sql") for own in (True, False)
    }
    assert any(op.rollback for op in ops)
    assert any(op.cancel is not None for op in ops)
    assert {item.channel for op in ops for item in op.items} == plan.channels.keys()
