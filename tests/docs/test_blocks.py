"""Every block of every page is well formed: programs parse, and every command of menzil exists with its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import PAGES, ROOT, Block, blocks
from tests.docs.grammar import complaint

#: Their Python is lines out of the middle of examples; tests compare it with the examples.
EXCERPTS = {"use-django.md", "use-sqlalchemy.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_is_well_formed(page: Path) -> None:
    whole = [block for block in blocks(page) if page.name not in EXCERPTS or block.kind != "python"]
    found = [wrong for block in whole if (wrong := complaint(block))]
    assert found == [], page.relative_to(ROOT)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("sh", "menzil worker --proceses 4\n"),
        ("sh", "cd /srv && menzil chanel list | head\n"),
        ("", "$ menzil message whi 42\n"),
        ("python", "async def f(:\n"),
        ("json", "{'a': 1}\n"),
        ("yaml", "a: [1\n"),
        ("dockerfile", "FORM python:3.13\n"),
        ("dockerfile", 'CMD ["menzil", "worker", "--conurrency", "4"]\n'),
        ("ini", "Restart=always\n"),
    ],
)
def test_a_slip_in_a_block_is_noticed(kind: str, text: str) -> None:
    assert complaint(Block(1, kind, "", text))
