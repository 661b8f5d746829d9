"""The README's first path, typed as it stands there: up, an endpoint, a webhook delivered and seen in the console."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_newcomer_who_types_what_the_readme_says_sees_a_webhook_delivered(db: str) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, str(ROOT / "tools" / "newcomer.py"), "--here"]
    env = {**os.environ, "MENZIL_DSN": db, "PYTHONPATH": paths}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    steps = [line.split("s  ", 1)[1] for line in done.stdout.splitlines()]
    assert steps[0] == ".venv/bin/menzil up"
    assert steps[-3:] == ["the receiver has the order", "the console shows that it completed", "together"]
