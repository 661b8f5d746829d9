"""Mistakes of users are seen by a type checker before any message is: handlers, hooks, calls of clients."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TYPED = ROOT / "tests" / "typed"
RIGHT = TYPED / "right.py"
WRONG = {path.name: path for path in (TYPED / "wrong.py", TYPED / "wrong_calls.py")}
#: File, line and text of each mistake.
MARKED = {
    (name, number): line
    for name, path in WRONG.items()
    for number, line in enumerate(path.read_text().splitlines(), 1)
    if "  # wrong: " in line
}


def errors(*files: Path) -> list[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", *map(str, files)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not checked.stderr, checked.stderr
    return [line for line in checked.stdout.splitlines() if ": error:" in line]


def test_mypy_accepts_right_handlers_and_refuses_each_wrong_one() -> None:
    found = errors(RIGHT, *WRONG.values())
    assert [line for line in found if "right.py" in line] == []
    refused = {(name, int(number)) for name, number in re.findall(r"(\w+\.py):(\d+): error:", "\n".join(found))}
    # Some versions of mypy name the line of the decorator, some that of the function below it.
    missed = [line for (name, number), line in MARKED.items() if not {(name, number), (name, number + 1)} & refused]
    assert missed == [], "accepted"
    assert refused <= MARKED.keys() | {(name, number + 1) for name, number in MARKED}, "\n".join(found)


def pyright() -> str:
    """The command, if it works: the package of pyright on PyPI fetches the program itself when it first runs."""
    for name in ("pyright", "basedpyright"):
        command = shutil.which(name)
        if command and subprocess.run([command, "--version"], capture_output=True, check=False).returncode == 0:
            return command
    pytest.skip("neither pyright nor basedpyright is installed: pipx install basedpyright")


def test_pyright_accepts_and_refuses_the_same(tmp_path: Path) -> None:
    files = [RIGHT, *WRONG.values(), ROOT / "tests" / "unit" / "test_typing.py"]
    # The mode of pyright when nothing is configured; basedpyright would be stricter.
    asked = {
        "include": [str(file) for file in files],
        "typeCheckingMode": "standard",
        "extraPaths": [str(ROOT / "src")],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(asked))
    run = [pyright(), "--outputjson", "--pythonpath", sys.executable]
    checked = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    answer = json.loads(checked.stdout)
    assert answer["summary"]["filesAnalyzed"] == len(files), checked.stdout
    found = {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1): one["message"]
        for one in answer["generalDiagnostics"]
        if one["severity"] == "error"
    }
    assert [line for place, line in MARKED.items() if place not in found] == [], "accepted"
    assert {place: said for place, said in found.items() if place not in MARKED} == {}, "refused"
