"""tools/bootstrap.py in a small tree of its own, with a uv that only writes down what it was asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BOOTSTRAP = Path(__file__).resolve().parents[2] / "tools" / "bootstrap.py"

# Makes an environment with a Python that can be executed, and dies with its caller if told to.
FAKE_UV = """#!/bin/sh
echo "$@" >> "{calls}"
for last; do :; done
if [ "$1" = venv ]; then mkdir -p "$last/bin" && ln -s "{python}" "$last/bin/python"; fi
if [ "$1" = "$DIE_AT" ]; then kill -9 "$PPID"; fi
"""


class Tree:
    """A project with a lock, a pyproject.toml and a bootstrap."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls = root / "calls"
        self.lock = root / "requirements.lock"
        self.pyproject = root / "pyproject.toml"
        self.bin = root / "bin"
        (root / "tools").mkdir(parents=True)
        self.bin.mkdir()
        shutil.copy(BOOTSTRAP, root / "tools")
        self.lock.write_text("first==1.0\nsecond==2.0\n")
        self.pyproject.write_text('[project]\nname = "small"\n')
        self.calls.write_text("")
        uv = self.bin / "uv"
        uv.write_text(FAKE_UV.format(calls=self.calls, python=sys.executable))
        uv.chmod(0o755)

    def start(self, **environ: str) -> subprocess.Popen[str]:
        environ = {**os.environ, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", **environ}
        command = [sys.executable, str(self.root / "tools" / "bootstrap.py")]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, **environ: str) -> tuple[int, str]:
        process = self.start(**environ)
        output, _ = process.communicate(timeout=60)
        return process.returncode, output

    def steps(self) -> list[str]:
        """What was asked of uv since the last look."""
        names = {"venv": "environment", "--requirement": "packages", "--editable": "project"}
        lines = self.calls.read_text().splitlines()
        self.calls.write_text("")
        return [next(name for word, name in names.items() if word in line.split()) for line in lines]


EVERYTHING = ["environment", "packages", "project"]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "tree")


def test_first_run_makes_everything_and_the_second_does_nothing(tree: Tree) -> None:
    code, output = tree.run()
    assert (code, tree.steps()) == (0, EVERYTHING)
    assert "installing 2 packages" in output
    assert tree.run() == (0, "")
    assert tree.steps() == []


def test_what_is_installed_is_compiled_once_even_where_python_may_write_no_bytecode(tree: Tree) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = tree.root / ".venv" / "lib" / version / "site-packages"
    shelf = tree.root / "shelf"
    shelf.mkdir()
    (shelf / "first.py").write_text("ONE = 1\n")
    (shelf / "no_python.py").write_text("{{ template }} =\n")
    uv = tree.bin / "uv"
    copies = f'if [ "$1" = pip ]; then mkdir -p "{packages}" && cp "{shelf}"/* "{packages}"; fi\n'
    uv.write_text(uv.read_text() + copies)
    code, output = tree.run(PYTHONDONTWRITEBYTECODE="1")
    assert (code, tree.steps()) == (0, EVERYTHING)
    assert [path.name.split(".")[0] for path in packages.rglob("*.pyc")] == ["first"]
    assert "Error" not in output


def test_changed_pyproject_installs_only_the_project_again(tree: Tree) -> None:
    tree.run()
    tree.steps()
    tree.pyproject.write_text('[project]\nname = "other"\n')
    assert tree.run()[0] == 0
    assert tree.steps() == ["project"]


def test_changed_lock_starts_over_and_leaves_nothing_behind(tree: Tree) -> None:
    tree.run()
    tree.steps()
    leftover = tree.root / ".venv" / "leftover"
    leftover.touch()
    tree.lock.write_text("first==1.1\n")
    assert tree.run()[0] == 0
    assert tree.steps() == EVERYTHING
    assert not leftover.exists()


@pytest.mark.parametrize("step", ["venv", "pip"])
def test_run_killed_halfway_is_started_over(tree: Tree, step: str) -> None:
    assert tree.run(DIE_AT=step)[0] == -9
    tree.steps()
    assert tree.run()[0] == 0
    assert tree.steps() == EVERYTHING
    assert tree.run() == (0, "")


def test_two_runs_at_once_make_it_once(tree: Tree) -> None:
    both = [tree.start(), tree.start()]
    for process in both:
        process.communicate(timeout=60)
    assert [process.returncode for process in both] == [0, 0]
    assert tree.steps() == EVERYTHING


def test_copied_tree_does_not_trust_the_environment_it_was_copied_with(tree: Tree, tmp_path: Path) -> None:
    tree.run()
    tree.steps()
    shutil.copytree(tree.root, tmp_path / "copy", symlinks=True)
    copied = [sys.executable, str(tmp_path / "copy" / "tools" / "bootstrap.py")]
    environ = {**os.environ, "PATH": f"{tree.bin}{os.pathsep}{os.environ['PATH']}"}
    assert subprocess.run(copied, env=environ, capture_output=True, check=False).returncode == 0
    assert tree.steps() == EVERYTHING


def test_vanished_python_starts_over(tree: Tree) -> None:
    tree.run()
    tree.steps()
    (tree.root / ".venv" / "bin" / "python").unlink()
    assert tree.run()[0] == 0
    assert tree.steps() == EVERYTHING
