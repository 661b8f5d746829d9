"""The load lab at tiny sizes: each lab ends with verdicts and plots, and growth is told from rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest

from bench import measured
from bench.crew import Crew
from bench.figures import Figure, Target
from bench.load import backlog, channels, held, pages, sustained
from bench.load.__main__ import LABS
from bench.load.arrivals import ENTRY, Arrivals
from bench.load.pages import Page, markdown
from bench.load.watch import Look, growth
from bench.server import Server
from bench.session import Session
from menzil.embedded import Embedded

ROOT = Path(__file__).resolve().parents[2]
PLOTS = {
    "sustained": ["load-latency", "load-sizes"],
    "held": ["load-held"],
    "backlog": ["load-backlog"],
    "channels": ["load-channels"],
}


@pytest.fixture(scope="module")
def session(server: Embedded) -> Iterator[Session]:
    made = Server(server.dsn, own=True)
    with Crew(2) as crew:
        yield Session(made, crew, quick=True)
    made.drop()


def tiny(monkeypatch: pytest.MonkeyPatch, lab: ModuleType, **sizes: object) -> None:
    for name, value in sizes.items():
        monkeypatch.setattr(lab, name, {True: value})


@pytest.mark.slow
@pytest.mark.parametrize("lab", LABS)
def test_a_lab_ends_with_verdicts_and_plots(
    session: Session, lab: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    monkeypatch.setattr(measured, "PAGE", tmp_path / "measured.md")
    measured.PAGE.write_text("<!-- load -->\n\n<!-- /load -->\n")
    tiny(monkeypatch, sustained, CALIBRATION=0.5, WARM_UP=0.5, SECONDS=4.0)
    tiny(monkeypatch, held, SLICES=(2, 0.5))
    tiny(monkeypatch, backlog, LARGE=5_000, EACH=5)
    tiny(monkeypatch, channels, CHANNELS=50, ROUNDS=1)
    page = Page(keep=True)
    session.figures.clear()
    import_module(f"bench.load.{lab}").run(session, page)
    assert session.figures
    assert all(figure.reached is not None for figure in session.figures)
    assert [path.name for path in page.written] == [f"{name}.svg" for name in PLOTS[lab]]
    for path in page.written:
        ElementTree.fromstring(path.read_text())
    assert all(f"]({name}.svg)" in page.write({}, session.figures) for name in PLOTS[lab])


def test_a_table_that_doubles_is_told_from_one_that_gains_a_page() -> None:
    looks = [
        Look(
            float(at),
            {"small": (8192 * (at + 1), 0), "large": (10_000_000, 2_000_000 * (2 if at > 7 else 1))},
            50,
            5,
            0,
        )
        for at in range(10)
    ]
    assert growth(looks) == (2.0, "large, indexes")
    assert growth(looks[:6])[0] == 1.0


def test_a_missed_target_is_said() -> None:
    figure = Figure("sustained", "p99", [1.5], Target(1.25, at_least=False))
    assert "| sustained | p99 | 1.50 × | ≤ 1.25 | **missed** |" in markdown({}, [figure], [])


def test_a_run_of_one_lab_leaves_what_others_found() -> None:
    one, other = (Figure(lab, "p99", [1.5], Target(1.25, at_least=False)) for lab in ("sustained", "held"))
    both = {"run": "sustained held, 9 s, Monday"}
    page = markdown(both, [one, other], [("Sizes", "load-sizes.svg"), ("Held", "load-held.svg")])
    again = Figure("sustained", "p99", [1.0], Target(1.25, at_least=False))
    for day in ("Tuesday", "Wednesday"):
        page = markdown({"run": f"sustained, 9 s, {day}"}, [again], [("Sizes", "load-sizes.svg")], page)
    rows = [line.split(" | ")[:3] for line in page.splitlines() if "p99" in line]
    assert rows == [["| sustained", "p99", "1.00 ×"], ["| held", "p99", "1.50 ×"]]
    runs = [line for line in page.splitlines() if line.startswith("- ")]
    assert runs == ["- run: sustained, 9 s, Wednesday", "- run: sustained held, 9 s, Monday"]
    assert page.count("load-sizes.svg") == page.count("load-held.svg") == 1


def test_arrivals_are_counted_by_the_length_of_their_file(tmp_path: Path) -> None:
    arrivals = Arrivals(tmp_path / "arrivals")
    arrivals.path.write_bytes(b"".join(ENTRY.pack(number, number + 7) for number in range(3)))
    assert arrivals.count() == 3
    assert arrivals.read(1) == [(1, 8), (2, 9)]


def test_an_unknown_lab_is_refused() -> None:
    command = [sys.executable, "-m", "bench.load", "nonsense"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no lab 'nonsense'; choose from sustained," in done.stderr
