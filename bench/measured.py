"""Tables of the page of figures are put there by the program that measured them."""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "explanation" / "measured.md"


def first_table(page: str) -> str:
    """The first table of a page, without its last column, which is for those who look closer."""
    lines = dropwhile(lambda line: not line.startswith("|"), page.splitlines())
    table = takewhile(lambda line: line.startswith("|"), lines)
    return "\n".join(line.removesuffix("|").rpartition("|")[0] + "|" for line in table)


def block(text: str, mark: str) -> str:
    """What stands between two marks."""
    found = re.search(f"<!-- {mark} -->\n(.*?)\n<!-- /{mark} -->", text, re.DOTALL)
    if found is None:
        raise ValueError(f"The page of figures has no place for {mark}.")
    return found[1]


def show(mark: str, page: str) -> None:
    """Put the first table of the page between the marks."""
    text = PAGE.read_text()
    before = f"<!-- {mark} -->\n{block(text, mark)}\n"
    PAGE.write_text(text.replace(before, f"<!-- {mark} -->\n{first_table(page)}\n"))
