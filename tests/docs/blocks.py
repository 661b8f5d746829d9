"""The code blocks of a page, each with its language and the comment above it.

A comment above a block says how a test treats it:

- `<!-- not run: REASON -->`: only its grammar is checked. The reason names the test that does the same, if any.
- `<!-- newcomer: … -->`: `tools/newcomer.py` runs it, which a test starts.
- `<!-- with: NAME -->`: a part of `tests/docs/parts.py` prepares it, and looks at what it did.
- `<!-- with: spark -->`: `tests/spark/test_pages.py` runs it, in the Spark session of the tests.
- `<!-- file: NAME -->`: it is a file of this name, in the folder in which the other blocks of the page run.
- `<!-- ends with N -->`: its last command ends with this exit code.

The last three may stand in one comment, with `; ` between them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
#: Every page that people read; decisions are records of their day.
PAGES = [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if page.parent.name != "decisions")]
_BLOCK = re.compile(r"(?:^<!-- ([^\n]*?) -->\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One block of a page. `kind` is the word behind the fence, "" for what a program prints."""

    line: int
    kind: str
    mark: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run here."""
        found = re.fullmatch(r"(?:not run|newcomer): (.+)", self.mark)
        return found[1] if found else None

    @property
    def file(self) -> str | None:
        return self._said(r"file: (\S+)")

    @property
    def part(self) -> str | None:
        """Who prepares it."""
        return self._said(r"with: (\w+)")

    @property
    def ends_with(self) -> int:
        return int(self._said(r"ends with (\d)") or 0)

    def _said(self, pattern: str) -> str | None:
        found = [one[1] for word in self.mark.split("; ") if (one := re.fullmatch(pattern, word))]
        return found[0] if found else None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(text.count("\n", 0, found.start()) + 1, found[2], found[1] or "", found[3])
        for found in _BLOCK.finditer(text)
    ]


def with_spark(page: Path) -> list[Block]:
    """The blocks that run in a Spark session, and what they print."""
    return [block for block, needed in _by_session(page) if needed]


def without_spark(page: Path) -> list[Block]:
    return [block for block, needed in _by_session(page) if not needed]


def _by_session(page: Path) -> list[tuple[Block, bool]]:
    found: list[tuple[Block, bool]] = []
    for block in blocks(page):
        # What is printed belongs to the block before it.
        needed = block.part == "spark" or (not block.kind and not block.mark and bool(found) and found[-1][1])
        found.append((block, needed))
    return found


def shell_lines(text: str) -> list[str]:
    """The commands of a shell block: continued lines joined, comments and empty lines left out."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (re.sub(r"(^|\s)#\s.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]
