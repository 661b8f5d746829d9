"""Shares of slots and the budget of bytes, by numbers alone."""

from __future__ import annotations

import menzil
from menzil.worker.budget import Budget
from menzil.worker.share import ALONE, QUICK, RECENT, Shares


def fill(shares: Shares, channel: str, *, most: int = 1000) -> int:
    """Lease from an endpoint that always has messages until it has had its share; return how many."""
    taken = 0
    while taken < most:
        shares.look()
        if channel in shares.out:
            return taken
        shares.enter([channel] * shares.room, 0.0)
        taken += shares.room
    raise AssertionError("it never had its share")


def test_one_slow_endpoint_takes_half_of_the_slots_beside_another() -> None:
    shares = Shares(100, 500)
    shares.enter(["fast", "slow"], 0.0)
    shares.leave("fast", QUICK / 2)
    assert fill(shares, "slow") + 1 == 50


def test_an_endpoint_that_is_alone_leaves_a_tenth() -> None:
    assert fill(Shares(100, 500), "slow") == 90
    assert fill(Shares(10, 50), "slow") == 9


def test_several_slow_endpoints_leave_some_slots_free() -> None:
    shares = Shares(100, 500)
    for name in "abc":
        shares.enter([name], 0.0)
    taken = [fill(shares, name) + 1 for name in "abc"]
    assert sum(taken) < 95
    assert min(taken) >= 5


def test_slots_that_slow_deliveries_give_away_are_shared_too() -> None:
    shares, held = Shares(100, 500), 1
    shares.enter(["fast", "slow"], 0.0)
    shares.leave("fast", 0.001)
    for _ in range(20):
        held += fill(shares, "slow")
        shares.slow({"slow": held}, 0.0)
    assert held == 250


def test_a_quick_endpoint_is_not_limited() -> None:
    shares = Shares(100, 500)
    shares.enter(["a", "b"], 0.0)
    for name in ("a", "b"):
        shares.leave(name, QUICK / 10)
    shares.enter(["a"] * 99, 0.0)
    shares.look()
    assert shares.out == []
    assert shares.room == 500


def test_an_endpoint_that_becomes_slow_is_limited_and_one_that_recovers_is_not() -> None:
    shares = Shares(10, 50)
    shares.enter(["a", *["b"] * 20], 0.0)
    shares.leave("a", 0.001)
    for _ in range(10):
        shares.leave("b", 0.001)
    shares.look()
    assert shares.out == []
    for _ in range(5):
        shares.leave("b", 1.0)
    shares.look()
    assert shares.out == ["b"]
    for _ in range(5):
        shares.leave("b", 0.001)
    shares.enter(["b"] * 40, 0.0)
    for _ in range(40):
        shares.leave("b", 0.001)
    shares.look()
    assert shares.out == []


def test_an_endpoint_gets_more_when_a_quarter_of_its_share_is_free_again() -> None:
    shares = Shares(100, 500)
    shares.enter(["other", "slow"], 0.0)
    shares.leave("other", 0.001)
    assert fill(shares, "slow") + 1 == 50
    freed = 0
    while "slow" in shares.out:
        shares.leave("slow", 6.0)
        freed += 1
        shares.look()
    assert 2 <= freed <= 12


def test_a_flood_for_a_new_endpoint_is_taken_in_up_to_its_share() -> None:
    shares = Shares(100, 500)
    shares.enter(["fast"], 0.0)
    shares.leave("fast", 0.001)
    flood = ["fast", *["new"] * 400, "fast"]
    answers = shares.fits(flood)
    assert answers[0] is answers[-1] is True
    assert answers.count(True) == 52
    shares.enter(["new"] * 50, 0.0)
    assert all(shares.fits(["new"] * 10))  # now it is known, and leases are asked for accordingly


def test_an_endpoint_that_was_not_seen_for_a_minute_is_forgotten() -> None:
    shares = Shares(100, 500)
    shares.enter(["gone"], 0.0)
    shares.leave("gone", 6.0)
    shares.slow({}, RECENT + 1)
    assert fill(shares, "slow") == 100 * ALONE / (1 + ALONE)


def message(size: int) -> menzil.Message:
    row = (1, "a", b"x" * size, None, None, 1, None, None, None, None, 0, 0, None, None, None, None, 1)
    return menzil.Message.from_row(row, lambda raw: raw)


def test_a_budget_of_bytes_is_careful_at_first_and_then_knows_the_messages() -> None:
    budget = Budget(64_000, 1_000)
    assert budget.room() == 64
    small = [message(10) for _ in range(20)]
    for _ in range(30):
        budget.enter(small)
        for one in small:
            budget.leave(one)
    assert budget.held == 0
    assert budget.room() == 6400
    large = [message(1_000) for _ in range(50)]
    budget.enter(large)
    assert budget.room() == 14
    budget.enter(large[:20])
    assert budget.room() == 0
