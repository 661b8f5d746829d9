"""Pages that name a test name one that exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
RECORD = ROOT / "docs" / "decisions" / "0012-log-runs-and-proofs.md"
#: A path below tests/, and a file or a function in it.
PATH = re.compile(r"\btests/[\w/]+(?:\.py)?")
NAMED = re.compile(r"\b(test_\w+\.py)(?:::(test_\w+))?")
#: Programs name files of their own.
PROGRAM = re.compile(r"^```python\n.*?^```$", re.MULTILINE | re.DOTALL)


#: So do the files that a reader of a tutorial writes.
FILE = re.compile(r"<!-- walk: file .*? -->")


def functions(file: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_names_files_and_tests_that_exist(page: Path) -> None:
    text = FILE.sub("", PROGRAM.sub("", page.read_text()))
    assert [path for path in PATH.findall(text) if not (ROOT / path).exists()] == []
    for name, function in NAMED.findall(text):
        files = list((ROOT / "tests").rglob(name))
        assert files, f"{page.name} names {name}"
        assert not function or any(function in functions(file) for file in files), f"{name} has no {function}"


def test_every_race_of_the_record_has_its_test() -> None:
    table = RECORD.read_text().partition("test in `tests/races`")[2].partition("\n## ")[0]
    rows = [line.split("|")[-2].strip() for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) >= 12
    for row in rows:
        name, function = re.fullmatch(r"`(test_\w+\.py)::(test_\w+)`", row).groups()
        assert function in functions(ROOT / "tests" / "races" / name), row
