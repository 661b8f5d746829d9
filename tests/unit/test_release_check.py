"""The check of a release refuses figures above their limits, and a wheel that differs from the source."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tools import release_check


def test_a_figure_at_its_limit_passes_and_one_above_it_fails_the_release() -> None:
    assert release_check.figure("", 8, 8, "distributions") == "8 distributions (at most 8)"
    with pytest.raises(release_check.FailedError, match="Above the limit: 9 distributions"):
        release_check.figure("", 9, 8, "distributions")


def test_a_wheel_without_a_file_of_the_package_fails_the_release(tmp_path: Path) -> None:
    wheel = tmp_path / "menzil-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("menzil/__init__.py", "")
    with pytest.raises(release_check.FailedError, match="The wheel and src differ"):
        release_check.look_into(wheel)


def test_a_wheel_that_is_too_large_says_which_room_takes_how_much(tmp_path: Path) -> None:
    wheel = tmp_path / "menzil-0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name, size in {
            "menzil/sql/a.sql": 9_000,
            "menzil/cli/b.py": 4_000,
            "menzil-0.dist-info/RECORD": 2_000,
        }.items():
            file.writestr(name, "x" * size)
    said = release_check.breakdown(wheel).split(", ")
    assert [one.strip() for one in said] == ["menzil/sql 9", "menzil/cli 4", "RECORD 2", "headers of the zip 0"]
