"""The tutorial for Spark users does what its page says, block by block."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "spark.md").read_text()
PROGRAM = ROOT / "examples" / "spark_tutorial.py"


def blocks(kind: str) -> list[str]:
    return [
        text for found, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if found == kind
    ]


def same_numbers(text: str) -> str:
    """Days and milliseconds differ from run to run, and with them the width of a column."""
    text = re.sub(r"\d{4}-\d\d-\d\d", "DAY", re.sub(r"\d+\.\d", "MS", text))
    return re.sub(r"-+", "-", re.sub(r" +", "", text))


def test_the_page_shows_the_program_and_nothing_else() -> None:
    shown = "\n".join(blocks("python"))
    assert shown == PROGRAM.read_text().split('"""\n\n', 1)[1]


@pytest.mark.usefixtures("compiled")
def test_the_program_prints_what_the_page_shows_also_when_it_runs_twice(
    spark: SparkSession, db: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("MENZIL_DSN", db)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    meant = [line for block in blocks("") for line in same_numbers(block).splitlines() if line]
    for _ in ("first run", "second run, on the same database"):
        runpy.run_path(str(PROGRAM), run_name="__main__")
        printed = [line for line in same_numbers(capfd.readouterr().out).splitlines() if line]
        # A run over midnight has two days.
        assert list(dict.fromkeys(printed)) == list(dict.fromkeys(meant))
