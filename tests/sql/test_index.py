"""docs/reference/sql-index.md: every function, its file, the tables it writes. MENZIL_GOLDEN=rewrite writes it."""

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

Every function of the schema, its file under `src/menzil/sql/functions`, and the tables it writes itself: `+` inserts,
`~` updates, `-` deletes. `message` stands for its monthly partitions.

| function | file | writes |
|---|---|---|
"""


def homes() -> dict[str, Path]:
    """The file of every function."""
    return {
        name: path.relative_to(ROOMS)
        for path in sorted(ROOMS.rglob("*.sql"))
        for name in re.findall(DEFINES, path.read_text())
    }


def written(text: str) -> str:
    found: dict[str, set[str]] = {}
    for verb, table in re.findall(WRITES, text):
        name = re.sub(r"^archive_\d{4}_\d{2}$", "message", table)
        found.setdefault(name, set()).add(MARKS[verb.lower()])
    return ", ".join(f"{table} {''.join(sorted(marks, key='+~-'.index))}" for table, marks in sorted(found.items()))


def test_the_index_is_what_the_functions_are(queue: Queue) -> None:
    texts = sources(queue)
    rows = [
        f"| `{name}` | {path} | {'' if name in TEMPLATE else written(texts[name])} |\n"
        for name, path in sorted(homes().items())
        if name in texts
    ]
    page = HEAD + "".join(rows).replace("|  |", "| |")
    if os.environ.get("MENZIL_GOLDEN") == "rewrite":
        PAGE.write_text(page)
    assert page.splitlines() == PAGE.read_text().splitlines()


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
