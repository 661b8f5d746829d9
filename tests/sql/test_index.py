"""docs/reference/sql-index.md: every function, what its comment says, its file, the tables it writes.

MENZIL_GOLDEN=rewrite writes the page.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.sql.queue import Queue
from tests.sql.test_doors import DEFINES, ROOMS, TEMPLATE, sources

PAGE = ROOMS.parents[3] / "docs" / "reference" / "sql-index.md"
WRITES = r"(?i)\b(insert into|update|delete from) (?:only )?menzil\.(\w+)"
MARKS = {"insert into": "+", "update": "~", "delete from": "-"}
HEAD = """# Where each function is

Every function of the schema, what the comment above it says first, its file under `src/menzil/sql/functions`, and
the tables it writes itself: `+` inserts, `~` updates, `-` deletes. `message` stands for its monthly partitions.
Functions with a leading underscore are private. How to call the others: [SQL](sql.md).

| function | what it does | file | writes |
|---|---|---|---|
"""


def homes() -> dict[str, Path]:
    """The file of every function."""
    return {
        name: path.relative_to(ROOMS)
        for path in sorted(ROOMS.rglob("*.sql"))
        for name in re.findall(DEFINES, path.read_text())
    }


def told(text: str, name: str) -> str:
    """The first sentence of the comment above a function. One comment may stand above several."""
    comment: list[str] = []
    before = ""
    for line in text.splitlines():
        if re.search(rf"create or replace (?:function|procedure) menzil\.{name}\b", line):
            break
        if line.startswith("--"):
            comment = [*comment, line] if before.startswith("--") else [line]
        before = line
    else:
        return ""
    said = " ".join(line.lstrip("- ").rstrip() for line in comment)
    return re.split(r"(?<=[.:]) (?=[A-Z(])", said)[0].rstrip(".:").replace("|", "\\|").replace("*", "\\*")


def written(text: str) -> str:
    found: dict[str, set[str]] = {}
    for verb, table in re.findall(WRITES, text):
        name = re.sub(r"^archive_\d{4}_\d{2}$", "message", table)
        found.setdefault(name, set()).add(MARKS[verb.lower()])
    return ", ".join(f"{table} {''.join(sorted(marks, key='+~-'.index))}" for table, marks in sorted(found.items()))


def test_the_index_is_what_the_functions_are(queue: Queue) -> None:
    texts = sources(queue)
    says = {name: told((ROOMS / path).read_text(), name) for name, path in homes().items() if name in texts}
    rows = [
        f"| `{name}` | {says[name]} | {path} | {'' if name in TEMPLATE else written(texts[name])} |\n"
        for name, path in sorted(homes().items())
        if name in texts
    ]
    page = HEAD + "".join(rows).replace("|  |", "| |")
    if os.environ.get("MENZIL_GOLDEN") == "rewrite":
        PAGE.write_text(page)
    assert page.splitlines() == PAGE.read_text().splitlines()
    # channel_purge says it for both.
    assert [name for name in says if not says[name] and not name.startswith("_")] == ["purge_endpoint"]


#: send.sql holds menzil.send, and send_many.sql the first of two functions of that name.
ELSEWHERE = {"_send": "send_one", "send_many": "send_many_json"}


def test_a_function_that_another_file_calls_stands_in_a_file_of_its_name() -> None:
    texts = {path: re.sub(r"--.*", "", path.read_text()) for path in ROOMS.rglob("*.sql")}
    lost = [
        f"{name} in {path.relative_to(ROOMS)}"
        for path, text in texts.items()
        for name in re.findall(DEFINES, text)
        if path.stem not in (name.strip("_"), ELSEWHERE.get(name))
        and any(re.search(rf"\bmenzil\.{name}\s*\(", other) for place, other in texts.items() if place != path)
    ]
    assert lost == []
