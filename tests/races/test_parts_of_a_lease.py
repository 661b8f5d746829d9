"""Messages that were leased together and are settled apart: each once, by the transaction that shows its token."""

from __future__ import annotations

import threading

import pytest

from tests.races.actor import LEASE, Actor, Lease
from tests.races.stage import Stage


def test_two_sessions_settle_the_halves_of_one_lease_at_the_same_moment(stage: Stage):
    actors = [stage.hire(patient=True), stage.hire(patient=True)]
    barrier = threading.Barrier(2)

    def settle(actor: Actor, leases: list[Lease]) -> list[str]:
        barrier.wait()
        return actor.complete(leases)

    for _ in range(20):
        stage.watcher.send_batch("a", 20)
        leases = stage.watcher.take(20)
        assert stage.watcher.one("select count(*) from menzil.lease") == 1
        parts = [leases[:14], leases[8:]]
        outcomes = [stage.start(settle, actor, part) for actor, part in zip(actors, parts, strict=True)]
        settled = [
            lease.id
            for part, outcome in zip(parts, outcomes, strict=True)
            for lease, what in zip(part, outcome.result(), strict=True)
            if what == "settled"
        ]
        assert sorted(settled) == sorted(lease.id for lease in leases)
    assert stage.watcher.one("select count(*) from menzil.lease") == 0
    assert stage.watcher.one("select count(distinct id) from menzil.archive") == 400
    assert stage.watcher.one("select sum(n) from menzil.done") == 400


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("second", ["complete", "defer", "fail", "heartbeat"])
def test_settle_of_a_part_waits_for_an_open_settle_of_another_part_of_the_same_lease(
    stage: Stage, second: str, end: str
):
    stage.watcher.send_batch("a", 6)
    one, two = stage.hire(), stage.hire(patient=True)
    leases = one.take(6)
    with one.open():
        assert one.complete(leases[:3]) == ["settled"] * 3
        late = stage.start(getattr(two, second), leases[3:])
        stage.until_waiting(two, for_whom=one)
        one.run(end)
    assert late.result() == ["retry" if second == "fail" else "settled"] * 3
    assert one.complete(leases[:3]) == ["unknown" if end == "commit" else "settled"] * 3
    assert {stage.watcher.status(lease.id) for lease in leases[:3]} == {"completed"}


def test_messages_leased_apart_are_settled_in_transactions_that_do_not_wait_for_each_other(stage: Stage):
    stage.watcher.send_batch("a", 4)
    actors = [stage.hire() for _ in range(4)]
    rows = stage.watcher.run(
        "select id, channel, num_attempts, ordering_key from menzil.message_dequeue(%s, 4, p_apart => true)", LEASE
    )
    leases = [Lease(*row) for row in rows]
    for actor, lease in zip(actors, leases, strict=True):
        actor.begin()
        assert actor.complete([lease]) == ["settled"]
    actors[0].rollback()
    for actor in actors[1:]:
        actor.commit()
    assert [stage.watcher.status(lease.id) for lease in leases] == ["processing"] + ["completed"] * 3


def test_lease_whose_first_and_last_id_lie_as_far_apart_as_if_it_had_no_gaps_settles_its_own_messages(stage: Stage):
    """A lease lists messages in the order of the lane: here 1, 9, 7, 4. Nothing but these four has ended."""
    dues = (1, 50, 51, 4, 52, 53, 3, 54, 2, 55)
    ids = [
        stage.watcher.one("select menzil.message_create('a', 'x', %s::timestamptz)", f"2020-01-01 00:00:{due:02}")
        for due in dues
    ]
    leases = stage.watcher.take(4)
    own = [ids[0], ids[8], ids[6], ids[3]]
    assert [lease.id for lease in leases] == own
    assert stage.watcher.complete(leases) == ["settled"] * 4
    assert [row[0] for row in stage.watcher.run("select id from menzil.archive order by id")] == sorted(own)
    assert sorted(lease.id for lease in stage.watcher.take(6)) == sorted(set(ids) - set(own))
