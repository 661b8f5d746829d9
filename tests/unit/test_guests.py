"""Environments beside .venv: one that cannot be made leaves a reason and no rest, and never fails."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from tools import guests

THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"


def guest(*pythons: str, packages: tuple[str, ...] = (), proof: tuple[str, ...] = ("python", "-c", "")) -> guests.Guest:
    return guests.Guest("guest", pythons, packages, proof)


def test_this_python_is_found_and_a_version_that_no_machine_has_is_not() -> None:
    assert guests.find(THIS) == sys.executable
    assert guests.find("3.99") is None


def test_a_shim_that_does_not_answer_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim = tmp_path / "python3.98"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    assert guests.find("3.98") is None
    real = tmp_path / "pyenv" / "versions" / "3.98.1" / "bin" / "python3.98"
    real.parent.mkdir(parents=True)
    real.symlink_to(sys.executable)
    assert guests.find("3.98") == str(real)


def test_without_a_python_the_environment_is_left_out_with_the_reason(tmp_path: Path) -> None:
    said = guests.prepared(guest("3.98", "3.99"), tmp_path / "guest")
    assert said == "is left out: no Python 3.98 or 3.99 is on this machine"


def test_a_package_that_cannot_be_installed_leaves_a_reason_and_no_folder(tmp_path: Path) -> None:
    said = guests.prepared(guest(THIS, packages=(str(tmp_path / "none.whl"),)), tmp_path / "guest")
    assert said.startswith("is left out: ")
    assert not (tmp_path / "guest").exists()


def test_an_environment_that_works_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "menzil_guest-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("menzil_guest.py", "")
        file.writestr("menzil_guest-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: menzil_guest\nVersion: 1\n")
        file.writestr(
            "menzil_guest-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr("menzil_guest-1.dist-info/RECORD", "")
    asked = guest(THIS, packages=(str(wheel),), proof=("python", "-c", "import menzil_guest"))
    assert guests.prepared(asked, tmp_path / "guest") == f"is made with {sys.executable}"
    monkeypatch.setenv("PATH", "")
    assert guests.prepared(asked, tmp_path / "guest") == "is there"
