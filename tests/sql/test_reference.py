"""The reference names what there is: every public function with its parameters, every relation with its columns."""

from __future__ import annotations

import re
from pathlib import Path

from tests.sql.queue import Queue

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGE = (REFERENCE / "sql.md").read_text()
ELSEWHERE = "".join((REFERENCE / f"{name}.md").read_text() for name in ("endpoints", "schedules", "settings"))


def test_every_public_function_is_in_the_reference(queue: Queue) -> None:
    rows = queue.all(
        """select distinct proname from pg_proc
            where pronamespace = 'menzil'::regnamespace and proname not like '\\_%'"""
    )
    names = {row.proname for row in rows}
    assert {name for name in names if not re.search(rf"`{name}(\(|`)", PAGE)} == set()
    named = set(re.findall(r"`([a-z_]+)\(", PAGE))
    assert named - names == set()


def test_every_parameter_is_in_the_reference(queue: Queue) -> None:
    rows = queue.all(
        """select proname, proargnames[1:pronargs] as parameters from pg_proc
            where pronamespace = 'menzil'::regnamespace and proname not like '\\_%' and pronargs > 0"""
    )
    missing = [
        (row.proname, parameter)
        for row in rows
        for parameter in row.parameters
        if parameter not in (PAGE if f"`{row.proname}(" in PAGE else ELSEWHERE)
    ]
    assert missing == []


def test_every_column_of_every_relation_is_in_the_reference(queue: Queue) -> None:
    rows = queue.all(
        """select c.relname, array_agg(a.attname::text order by a.attnum) as columns from pg_class c
             join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
            where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'v' and c.relname not like '\\_%'
            group by 1"""
    )
    listed = dict(
        re.findall(r"^\| `(\w+)` \| (.*) \|$", PAGE[PAGE.index("## Relations") : PAGE.index("## Roles")], re.M)
    )
    assert listed.keys() == {row.relname for row in rows}
    for row in rows:
        text = re.sub(r" \([^)]*\)", "", listed[row.relname]).split(": ")[-1]
        assert text.split(", ") == row.columns, row.relname


def test_the_error_codes_a_function_raises_are_in_the_reference(queue: Queue) -> None:
    page = (REFERENCE / "error-codes.md").read_text()
    rows = queue.all("select prosrc from pg_proc where pronamespace = 'menzil'::regnamespace")
    raised = {
        code
        for row in rows
        for code in re.findall(r"errcode = '([0-9A-Z]{5})'", row.prosrc)
        if f"when sqlstate '{code}'" not in row.prosrc  # a code that the function itself catches
    }
    assert len(raised) > 8
    assert {code for code in raised if code not in page} == set()
    # The other way: a function raises every code of the first table.
    listed = set(re.findall(r"^\| ([0-9A-Z]{5}) \|", page.split("Two more come from PostgreSQL")[0], re.MULTILINE))
    assert listed - raised == set()
