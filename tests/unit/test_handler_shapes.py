"""Wrong shapes of handlers are seen by a type checker, before any message is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TYPED = ROOT / "tests" / "typed"


def errors(*files: Path) -> list[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", *map(str, files)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not checked.stderr, checked.stderr
    return [line for line in checked.stdout.splitlines() if ": error:" in line]


def test_a_type_checker_accepts_right_handlers_and_refuses_each_wrong_one() -> None:
    right, wrong = TYPED / "right.py", TYPED / "wrong.py"
    found = errors(right, wrong)
    assert [line for line in found if "right.py" in line] == []
    refused = {int(number) for number in re.findall(r"wrong\.py:(\d+): error:", "\n".join(found))}
    lines = wrong.read_text().splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "  # wrong: " in line}
    # Some versions of mypy name the line of the decorator, some that of the function below it.
    missed = {number for number in marked if not {number, number + 1} & refused}
    assert missed == set(), f"accepted: {[lines[number - 1] for number in sorted(missed)]}"
    assert refused <= marked | {number + 1 for number in marked}, "\n".join(found)
