"""The page about the engine draws tables and columns that exist, and says how large the SQL is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.sql_size import ENGINE, GOLDEN, HEAD, PAGE, ROOT, Size, Version, before, block, now, table


def columns() -> dict[str, set[str]]:
    """The columns of every table, as the golden schema lists them."""
    found: dict[str, set[str]] = {}
    name = ""
    for line in (ROOT / GOLDEN).read_text().splitlines():
        if opens := re.match(r"(?:partitioned )?table (\w+)", line):
            name = opens[1]
        elif line.startswith("  ") and name:
            found.setdefault(name, set()).add(line.split()[0])
        else:
            name = ""
    return found


def drawn() -> Iterator[tuple[str, str, set[str]]]:
    """Mark, table and columns of every row in the pictures."""
    for picture in re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL):
        for line in picture.splitlines():
            mark, name, cells = line.split(maxsplit=2)
            yield mark, name, {cell.split()[0] for cell in cells.split(" | ")}


def test_every_name_in_the_pictures_is_a_column_of_its_table() -> None:
    known = columns()
    rows = list(drawn())
    assert {name for _, name, _ in rows} >= {"message", "line", "run", "lane", "lease", "done", "returned"}
    for mark, name, cells in rows:
        assert mark in {"+", "-", "~"}
        assert cells <= known[name], name


def test_every_state_of_the_picture_is_a_table() -> None:
    (picture,) = re.findall(r"stateDiagram-v2(.*?)```", PAGE.read_text(), re.DOTALL)
    states = {name for edge in re.findall(r"(\w+|\[\*\]) --> (\w+|\[\*\])", picture) for name in edge} - {"[*]"}
    assert len(states) > 4
    assert states <= columns().keys()


def test_the_page_says_how_large_the_sql_is() -> None:
    """python tools/sql_size.py --write puts the table into the page."""
    said = block(PAGE.read_text())
    old = before()
    if old is not None:
        assert said == table(now(), old)
    else:  # no history, as in an sdist: the numbers of today are at the right of each arrow
        today = re.findall(r"→ ([\d,]+)", table(now(), Version({GOLDEN: ""})))
        assert re.findall(r"→ ([\d,]+)", said) == today


def test_a_line_a_function_and_a_table_are_counted_once() -> None:
    schema = [
        "table lane with (fillfactor=50)",
        "  id bigint",
        "partitioned table message RANGE (created_at)",
        "table plan",
    ]
    sql = ["-- why", "", "create or replace function menzil.send() returns bigint", "language sql return 1;  -- one"]
    files = {
        GOLDEN: "\n".join([*schema, "sequence wanted bigint", "sequence plan_id_seq bigint"]),
        "src/menzil/sql/functions/3_verbs/send/send.sql": "\n".join(sql),
    }
    version = Version(files)
    assert version.sizes()[ENGINE] == Size(lines=4, code=2, functions=1, tables=2)
    assert version.registers() == ["wanted"]
    assert HEAD in PAGE.read_text()
