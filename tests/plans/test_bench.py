"""The benchmark can fail: missed targets are said, and what was not measured is not counted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.crew import DRY_AFTER, _run
from bench.figures import Figure, Target
from bench.kept import keep
from bench.pace import Pace
from bench.report import markdown

ROOT = Path(__file__).resolve().parents[2]


def test_the_median_decides_whether_a_target_is_reached() -> None:
    figure = Figure("send", "ratio", [0.9, 0.6, 0.65], Target(0.7))
    assert figure.value == 0.65
    assert figure.reached is False
    assert "| 0.65 × | 0.60–0.90 | ≥ 0.70 | **not reached** |" in markdown({}, [figure])


def test_an_upper_bound_is_reached_from_below() -> None:
    assert Figure("depth", "pages", [1.1], Target(1.2, at_least=False)).reached is True
    assert Figure("depth", "pages", [1.3], Target(1.2, at_least=False)).reached is False


def test_searching_an_empty_queue_is_no_part_of_the_rate() -> None:
    left = iter([100] * 5)
    track = _run(lambda: next(left, 0), seconds=60)
    assert track.ran_dry
    assert len(track.ends) == 5 + DRY_AFTER
    assert track.seconds == track.ends[4]
    assert Pace([track]).rate == 500 / track.ends[4]


def test_an_unknown_section_is_refused() -> None:
    command = [sys.executable, "-m", "bench", "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no section 'nonsense'; choose from send," in done.stderr


def test_sections_measured_apart_make_one_page_that_says_when(tmp_path: Path) -> None:
    early = [
        Figure("send", "ratio", [0.9, 0.7], Target(0.7)),
        Figure("hot", "lanes", [1.5], Target(1200, at_least=False)),
    ]
    keep({"date": "2026-01-01 00:00 UTC", "server": "old"}, early, {"send": "5%", "hot": ""}, ("hot", "send"), tmp_path)
    late = [Figure("send", "ratio", [0.6], Target(0.7), {"sends/s": 17.0})]
    keep({"date": "2026-01-02 00:00 UTC", "server": "new"}, late, {"send": "1%"}, ("hot", "send"), tmp_path)
    page = (tmp_path / "latest.md").read_text()
    assert "- server: new" in page
    assert "| hot | lanes | 1.50 × |  | ≤ 1,200 | reached |  |\n| send | ratio | 0.60 × |" in page
    assert "| ≥ 0.70 | **not reached** | sends/s 17.0 |" in page
    assert "| hot | 2026-01-01 00:00 UTC | – |\n| send | 2026-01-02 00:00 UTC | 1% |" in page
