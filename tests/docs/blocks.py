"""The code blocks of a page, each with its language and the comment above it.

A comment above a block says how a test treats it:

- `<!-- not run: REASON -->`: it is only checked for its grammar.
- `<!-- file: NAME -->`: it is a file of this name, in the folder in which the other blocks of the page run.
- `<!-- ends with N -->`: its last command ends with this exit code.
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
        """Why it is not run."""
        found = re.fullmatch(r"not run: (.+)", self.mark)
        return found[1] if found else None

    @property
    def file(self) -> str | None:
        found = re.fullmatch(r"file: (\S+)", self.mark)
        return found[1] if found else None

    @property
    def ends_with(self) -> int:
        found = re.fullmatch(r"ends with (\d)", self.mark)
        return int(found[1]) if found else 0


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [
        Block(text.count("\n", 0, found.start()) + 1, found[2], found[1] or "", found[3])
        for found in _BLOCK.finditer(text)
    ]


def shell_lines(text: str) -> list[str]:
    """The commands of a shell block: continued lines joined, comments and empty lines left out."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (re.sub(r"(^|\s)#\s.*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]
