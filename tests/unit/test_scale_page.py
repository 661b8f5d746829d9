"""The page about large lakes says what its program computes from the inputs that it names."""

from __future__ import annotations

import re
from pathlib import Path

from bench.scale_arithmetic import Inputs, lines

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "lake-scale.md"


def numbers(text: str) -> set[str]:
    """Every number, written in one way: 3.0 is 3."""
    found = re.findall(r"\d[\d,]*(?:\.\d+)?", text)
    return {re.sub(r"\.0$", "", each.rstrip(",")) for each in found}


def test_every_computed_figure_of_the_page_is_the_one_that_the_program_prints() -> None:
    page = PAGE.read_text()
    computed = page[page.index("## Computed") :]
    for what, figure in lines(Inputs()):
        missing = numbers(figure) - numbers(computed)
        assert not missing, f"{what}: {figure}"


def test_the_page_names_the_inputs_of_the_program() -> None:
    page = PAGE.read_text()
    inputs = page[page.index("Inputs:") : page.index("| messages a second")]
    given = Inputs()
    for value in (given.export, given.stored, given.wal, given.disk, given.manifest, given.channels):
        assert f"{value:,.0f}" in numbers(inputs)
    assert f"{given.plan * 1000:.2f}" in numbers(page)
