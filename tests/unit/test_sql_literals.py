"""SQL that a role with standard_conforming_strings = off may run: a function is parsed when it is first called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import menzil

ROOT = Path(menzil.__file__).parent
# Migrations are left out: the installer turns the setting on for the transaction that runs them.
FILES = [
    *(ROOT / "sql" / "functions").rglob("*.sql"),
    *(ROOT / "sql" / "views").rglob("*.sql"),
    ROOT / "sql" / "roles.sql",
]
FILES += (ROOT / "install" / "sql").glob("*.sql")

# In this order: a comment or a name in quotes may hold an apostrophe.
_WORD = re.compile(r"""--[^\n]*|"[^"]*"|(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'""", re.DOTALL)


def plain_backslashes(text: str) -> list[str]:
    """Literals that mean something else when standard_conforming_strings is off."""
    return [word for word in _WORD.findall(text) if word.startswith("'") and "\\" in word]


def test_every_literal_means_the_same_without_standard_conforming_strings() -> None:
    found = {str(path.relative_to(ROOT)): words for path in FILES if (words := plain_backslashes(path.read_text()))}
    assert found == {}, "write E'…' with doubled backslashes"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"select '\d', E'\\d', 'it''s'", [r"'\d'"]),
        ("-- don't\n select 'a'", []),
        ("select \"it's\", '\\s'", [r"'\s'"]),
        (r"select e'\'', '\'", [r"'\'"]),
    ],
)
def test_the_check_finds_plain_literals_only(text: str, words: list[str]) -> None:
    assert plain_backslashes(text) == words
