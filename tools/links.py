#!/usr/bin/env python3
"""Find links of README and docs that lead nowhere: files that are not there, anchors that no heading has.

Prints one line per broken link and ends with exit code 1; says how many links it looked at when all are well. Standard
library only. Links to other sites are not opened.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?[^)]*\)|(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*#*$", re.MULTILINE)


def pages(root: Path = ROOT) -> list[Path]:
    """Every page that people read."""
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")), *sorted((root / "bench").rglob("*.md"))]


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading: lower case, spaces to dashes, everything else but letters gone."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """All anchors of a page. The second heading of a name gets -1, and so on."""
    found: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text())):
        name = slug(heading)
        number = found.get(name, 0)
        found[name] = number + 1
        names.add(f"{name}-{number}" if number else name)
    return frozenset(names)


def links(page: Path) -> Iterator[str]:
    """Where a page leads, without what stands in code."""
    text = _CODE.sub("", _FENCE.sub("", page.read_text()))
    for one, other in _LINK.findall(text):
        yield one or other


def complaint(page: Path, link: str) -> str | None:
    """What is wrong with a link, or None."""
    if re.match(r"[a-z]+:", link):
        return None
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    if not target.exists():
        return f"{link}: there is no such file"
    if anchor and target.suffix == ".md" and anchor not in anchors(target):
        return f"{link}: no heading has this anchor"
    return None


def broken(root: Path = ROOT) -> list[str]:
    """Every broken link, with its page."""
    return [
        f"{page.relative_to(root)}: {wrong}"
        for page in pages(root)
        for link in links(page)
        if (wrong := complaint(page, link))
    ]


if __name__ == "__main__":
    found = broken()
    print("\n".join(found) if found else f"{sum(len(list(links(page))) for page in pages())} links lead somewhere")
    sys.exit(1 if found else 0)
