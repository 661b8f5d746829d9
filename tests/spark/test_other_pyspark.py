"""The whole way on other versions of PySpark than that of .venv.

MENZIL_TEST_PYSPARK names directories made with `pip install --target DIR pyspark==VERSION`, separated by colons.
Without it the newest of 4.0 and 4.1 are installed for the time of the test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.torture, pytest.mark.timeout(3600)]

NAMED = [place for place in os.environ.get("MENZIL_TEST_PYSPARK", "").split(":") if place]
STEPS = ["export 30", "readStream 36", "writeStream 40", "send 50", "fanout 5", "replay", "audit 30"]


@pytest.mark.parametrize("chosen", NAMED or ["pyspark==4.0.*", "pyspark==4.1.*"])
def test_another_pyspark_sends_exports_verifies_streams_replays_and_audits(
    db: str, tmp_path: Path, chosen: str
) -> None:
    place = chosen
    if chosen not in NAMED:
        place = str(tmp_path / "pyspark")
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", place, chosen]
        subprocess.run(command, check=True, timeout=1200)
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.round_trip", str(tmp_path)],
        env=os.environ | {"MENZIL_DSN": db, "PYTHONPATH": place},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told = done.stdout.splitlines()
    assert [line for step in STEPS for line in told if line.startswith(step)] == told
    assert len(told) == len(STEPS)
