"""The module of `menzil worker MODULE:APP` does not come to its end: what its author reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def start(place: Path, text: str) -> subprocess.CompletedProcess[str]:
    (place / "broken.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "menzil", "worker", "broken:app", "--once", "--dsn", "dbname=not_reached"],
        cwd=place, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "traceback", "sentence"),
    [
        ("def connect():\n    import not_there\nconnect()\n", "line 3, in <module>", "ModuleNotFoundError"),
        ("import menzil\napp = menzil.Worker(\n", "line 2", "SyntaxError"),
        ("1 / 0\n", "line 1, in <module>", "ZeroDivisionError"),
    ],
)
def test_module_that_fails_shows_its_own_lines_and_one_sentence(
    tmp_path: Path, text: str, traceback: str, sentence: str
) -> None:
    done = start(tmp_path, text)
    assert done.returncode == 2
    assert f"Error: The module 'broken' failed while it was imported: {sentence}." in done.stderr
    assert traceback in done.stderr
    for noise in ("click", "importlib", "cli/worker.py"):
        assert noise not in done.stderr


@pytest.mark.parametrize("code", ["0", "3", "", "'bye'"])
def test_module_that_ends_the_program_is_no_worker_that_has_done_its_work(tmp_path: Path, code: str) -> None:
    done = start(tmp_path, f"import sys\nsys.exit({code})\n")
    assert done.returncode == 2
    assert "Error: The module 'broken' ended the program while it was imported" in done.stderr
    assert 'if __name__ == "__main__":' in done.stderr


def test_module_that_menzil_refuses_shows_the_sentence_alone(tmp_path: Path) -> None:
    done = start(tmp_path, "import menzil\napp = menzil.Worker(concurrency=0)\n")
    assert done.returncode == 2
    assert done.stderr == "Error: concurrency is a whole number, 1 or more, not 0.\n"
