"""The long runs of the torture lab; asked for with `-m torture`. `MENZIL_SEED=…` runs that seed and the next two."""

from __future__ import annotations

import os
import secrets

import pytest

from tests.torture.test_small_run import torture

FIRST = int(os.environ.get("MENZIL_SEED") or 0)


@pytest.mark.torture
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("run", range(3))
def test_a_hundred_thousand_sends_and_five_hundred_faults_break_no_promise(run: int) -> None:
    seed = FIRST + run if FIRST else secrets.randbelow(10**9)
    torture(seed, "--sends", "100000", "--faults", "500")
