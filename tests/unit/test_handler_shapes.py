"""Wrong shapes of handlers are seen by a type checker, before any message is."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TYPED = ROOT / "tests" / "typed"
RIGHT, WRONG = TYPED / "right.py", TYPED / "wrong.py"
LINES = WRONG.read_text().splitlines()
MARKED = {number for number, line in enumerate(LINES, 1) if "  # wrong: " in line}


def errors(*files: Path) -> list[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", *map(str, files)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not checked.stderr, checked.stderr
    return [line for line in checked.stdout.splitlines() if ": error:" in line]


def test_mypy_accepts_right_handlers_and_refuses_each_wrong_one() -> None:
    found = errors(RIGHT, WRONG)
    assert [line for line in found if "right.py" in line] == []
    refused = {int(number) for number in re.findall(r"wrong\.py:(\d+): error:", "\n".join(found))}
    # Some versions of mypy name the line of the decorator, some that of the function below it.
    missed = {number for number in MARKED if not {number, number + 1} & refused}
    assert missed == set(), f"accepted: {[LINES[number - 1] for number in sorted(missed)]}"
    assert refused <= MARKED | {number + 1 for number in MARKED}, "\n".join(found)


def pyright() -> str:
    """The command, if it works: the package of pyright on PyPI fetches the program itself when it first runs."""
    for name in ("pyright", "basedpyright"):
        command = shutil.which(name)
        if command and subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0:
            return command
    pytest.skip("neither pyright nor basedpyright is installed")


def test_pyright_accepts_and_refuses_the_same(tmp_path: Path) -> None:
    files = [RIGHT, WRONG, ROOT / "tests" / "unit" / "test_typing.py"]
    run = [pyright(), "--outputjson", "--pythonpath", sys.executable, *map(str, files)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    checked = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    answer = json.loads(checked.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(files), checked.stdout
    found = [
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1)
        for one in answer["generalDiagnostics"]
        if one["severity"] == "error"
    ]
    assert [place for place in found if place[0] != WRONG.name] == [], checked.stdout
    assert {line for _, line in found} == MARKED, checked.stdout
