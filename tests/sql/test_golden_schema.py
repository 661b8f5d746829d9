"""The schema is what the golden file says. MENZIL_GOLDEN=rewrite writes the file anew, for a change that is meant."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg

from tests.sql import golden

FILE = Path(__file__).with_name("golden_schema.txt")


def test_the_schema_is_what_the_golden_file_says(conn: psycopg.Connection) -> None:
    found = golden.lines(conn)
    if os.environ.get("MENZIL_GOLDEN") == "rewrite":
        FILE.write_text("\n".join(found) + "\n")
    assert found == FILE.read_text().splitlines()


def test_the_golden_file_names_every_public_routine(conn: psycopg.Connection) -> None:
    text = FILE.read_text()
    names = conn.execute(
        "select distinct case prokind when 'p' then 'procedure ' else 'function ' end || proname from pg_proc"
        " where pronamespace = 'menzil'::regnamespace and proname not like '\\_%'"
    )
    assert [name for (name,) in names if f"{name}(" not in text] == []
