"""Tables that the README shows are put there by the program that measured them."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def first_table(page: str) -> str:
    """The first table of a page, without its last column, which is for those who look closer."""
    lines = page.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append(f"{line.removesuffix('|').rpartition('|')[0].rstrip()} |" if "---" not in line else _shorter(line))
    return "\n".join(table)


def _shorter(rule: str) -> str:
    return rule.removesuffix("|").rpartition("|")[0] + "|"


def block(text: str, mark: str) -> str:
    """What stands between two marks."""
    found = re.search(f"<!-- {mark} -->\n(.*?)\n<!-- /{mark} -->", text, re.DOTALL)
    if found is None:
        raise ValueError(f"The README has no place for {mark}.")
    return found[1]


def show(mark: str, page: str) -> None:
    """Put the first table of the page between the marks."""
    text = README.read_text()
    before = f"<!-- {mark} -->\n{block(text, mark)}\n"
    README.write_text(text.replace(before, f"<!-- {mark} -->\n{first_table(page)}\n"))
