#!/usr/bin/env python3
"""Write docs/llms.txt from docs/README.md, the index of the documentation, in the form of llmstxt.org.

`--check` compares and ends with exit code 1 when the file is not what the index says. Standard library only.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INDEX = ROOT / "docs" / "README.md"
FILE = ROOT / "docs" / "llms.txt"
GROUPS = ("Tutorials", "How-to guides", "Reference", "Explanation")
_ITEM = re.compile(r"^- \[(.+?)\]\((.+?)\)(?:: (.+))?$")


def text(index: str | None = None) -> str:
    """The whole file."""
    index = INDEX.read_text() if index is None else index
    readme = (ROOT / "README.md").read_text().split("\n\n")
    parts = ["# menzil\n", f"> {' '.join(readme[1].split())}\n", f"{_plain(readme[2].rpartition(' [')[0])}\n"]
    for group in GROUPS:
        parts.append(f"## {group}\n")
        parts.append("".join(_line(*item) for item in _items(group, index)))
    return "\n".join(parts)


def listed(group: str) -> list[tuple[str, str]]:
    """Title and page of everything that the index lists in a group."""
    return [(title, page) for title, page, _ in _items(group, INDEX.read_text())]


def _items(group: str, index: str) -> list[tuple[str, str, str]]:
    found = re.search(rf"^## {group}$(.*?)(?=^## |\Z)", index, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"docs/README.md has no part {group}.")
    items = (_ITEM.match(line) for line in found[1].splitlines())
    return [(item[1], item[2], item[3] or "") for item in items if item]


def _line(title: str, page: str, says: str) -> str:
    return f"- [{title}]({page})" + (f": {_plain(says)}" if says else "") + "\n"


def _plain(words: str) -> str:
    """Without links: those of the README do not lead anywhere from here."""
    return " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words).split())


if __name__ == "__main__":
    if "--check" not in sys.argv:
        FILE.write_text(text())
    elif FILE.read_text() != text():
        print("docs/llms.txt is not what docs/README.md says; python tools/llms.py writes it")
        sys.exit(1)
