"""Everybody at once, for some seconds: a random history, then a verdict about it."""

from __future__ import annotations

import os
from random import SystemRandom

import pytest

from tests.races.crowd import Crowd
from tests.races.stage import Stage
from tests.races.verdict import ENDED, TRIES, Ended, Try, violations


@pytest.mark.slow
def test_sixteen_senders_and_four_consumers_lose_nothing_and_keep_every_promise(stage: Stage):
    seed = int(os.environ.get("MENZIL_SEED") or SystemRandom().randrange(10**9))
    print(f"MENZIL_SEED={seed}")
    crowd = Crowd(stage, seed)
    crowd.act(float(os.environ.get("MENZIL_CROWD_SECONDS") or 5), senders=16, consumers=4)
    ended = [Ended(*row) for row in stage.watcher.run(ENDED)]
    tries = [Try(*row) for row in stage.watcher.run(TRIES)]
    assert violations(crowd.ledger, ended, tries) == []
    assert stage.live() == 0
    assert len(crowd.ledger.sent) > 100, "too little happened to be a proof"
    stage.sweep()
    left = stage.watcher.run("select name, in_flight from menzil.channels where in_flight <> 0")
    assert left == []
    print(
        f"{len(crowd.ledger.sent)} sent, {len(crowd.ledger.undone)} rolled back, "
        f"{len(tries)} leases, {len(ended)} ended"
    )
