"""The short run of the torture lab, with every kind of fault this machine permits.

The seed is always the same, so that a change is judged by the change; `make torture` draws seeds by chance.
`MENZIL_SEED=…` names another.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SEED = 20261117
ROOT = Path(__file__).resolve().parents[2]


def torture(seed: int, *options: str) -> None:
    """Run the lab as a user types it: in a process of its own, whose mounts and children end with it."""
    command = [sys.executable, "-m", "tests.torture", "--seed", str(seed), *options]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, f"seed {seed} broke a promise; repeat it with: {' '.join(command)}"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_five_thousand_sends_and_forty_faults_break_no_promise() -> None:
    torture(int(os.environ.get("MENZIL_SEED") or SEED), "--sends", "5000", "--faults", "40")
