"""Settles and heartbeats lock leases in the order of their ids, wherever these lie in the table: nobody deadlocks."""

from __future__ import annotations

import pytest

from tests.races.stage import Stage


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("verb", ["complete", "defer", "fail", "heartbeat"])
def test_whoever_waits_for_a_lease_holds_those_with_lower_ids_and_no_others(stage: Stage, verb: str, known: bool):
    one, two, watcher = stage.hire(patient=True), stage.hire(), stage.watcher
    for priority in range(5):
        watcher.send("a", priority=priority)
    # Their rows lie in the table in the opposite order.
    leases = [watcher.take(1)[0] for _ in range(5)][::-1]
    assert [lease.id for lease in leases] == sorted(lease.id for lease in leases)
    if known:
        watcher.run("analyze menzil.lease")
    with two.open():
        two.heartbeat([leases[2]])
        waiting = stage.start(getattr(one, verb), leases)
        stage.until_waiting(one)
        free = [row[0] for row in watcher.run("select lo_id from menzil.lease order by lo_id for update skip locked")]
    waiting.result()
    assert free == [lease.id for lease in leases[3:]]
