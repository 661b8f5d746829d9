#!/usr/bin/env python3
"""How large the SQL is: lines, functions and tables by part, now and in 0.1.0, which comes from the git history.

`--write` puts the table into docs/explanation/engine.md; a test compares the two. Standard library only.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explanation" / "engine.md"
HEAD, TAIL = "<!-- size -->\n", "<!-- /size -->"
SQL = "src/menzil/sql"
GOLDEN = "tests/sql/golden_schema.txt"
RELEASE = "50ca4df"

ENGINE = "engine: words, doors, send, consume, settle, messages, channels, housekeeping"
AROUND = "around it: endpoints, circuits, events, schedules, history, pipeline, workers, health"
SINCE = "not in 0.1.0: brokers, bridges, plans, pulse, lookups, causes, copies, the operator's questions"
SURFACE = "views and roles"
MIGRATIONS = "migrations"
PARTS = (ENGINE, AROUND, SINCE, SURFACE, MIGRATIONS)

#: The first pattern that fits a path below src/menzil/sql names its part. The folders are those of both versions.
FILES = (
    (MIGRATIONS, r"migrations/"),
    (SURFACE, r"views/|roles\.sql"),
    (SINCE, r".*/(bridge|plan|pulse|lookups|why|life|turns|search)/"),
    (SINCE, r".*/endpoint/(check_(amqp|kafka|mqtt|broker)_config|auth_faults|is_subject|is_topic)\.sql"),
    (SINCE, r".*/pipeline/(pipeline_run_\w+|archive_census)\.sql"),
    (SINCE, r".*/history/(cause_\w+|error_outline|outline_cause|dlq_summary|hand_back|redrive_take_back)\.sql"),
    (SINCE, r".*/1_words/(is_copy|refuse_copy|copy_notice|record_home|system_identifier)\.sql"),
    (SINCE, r".*/4_housekeeping/(adopt|explain_letters|step_plans|notice_cluster|cleanup_p\w+)\.sql"),
    (AROUND, r".*/5_watching/(health_check|metrics|get_\w+|check_\w+|gates_\w+|room_seen|serves|snapshot_age)\.sql"),
    (SINCE, r".*/5_watching/"),
    (AROUND, r".*/(endpoint|circuit|pubsub|schedule|history|pipeline|worker|watch)/"),
    (ENGINE, r".*/(1_words|2_doors|4_housekeeping|internal|setting|maintain|send|consume|settle|message|channel)/"),
)  # fmt: skip
#: The same for tables.
TABLES = (
    (SINCE, r"(bridge|plan|pulse|pipeline_run|setting_word|correlated|lineage|lookup_state|home$|menzil_lake)"),
    (AROUND, r"(endpoint_|schedule$|schedule_|event|subscription|protocol|bulk|feed|worker|inbox|installed|migration)"),
    (ENGINE, r""),
)  # fmt: skip


@dataclass
class Size:
    """What one part has."""

    lines: int = 0
    code: int = 0
    functions: int = 0
    tables: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*(a + b for a, b in zip(self.row(), other.row(), strict=True)))

    def row(self) -> tuple[int, int, int, int]:
        return self.lines, self.code, self.functions, self.tables


@dataclass
class Version:
    """One version of the SQL, as texts by path."""

    texts: dict[str, str]

    @property
    def golden(self) -> str:
        return self.texts[GOLDEN]

    def tables(self, part: str) -> list[str]:
        """Tables of a part. Partitions are not counted."""
        found = re.findall(r"^(?:partitioned )?table (\S+)", self.golden, re.MULTILINE)
        return [name for name in found if _first(TABLES, name) == part]

    def registers(self) -> list[str]:
        """Sequences that functions read and set. Those behind identity columns and ids are not registers."""
        found = re.findall(r"^sequence (\w+)", self.golden, re.MULTILINE)
        return [name for name in found if not re.search(r"_id_seq$|^message_id$|^bulk_staging$", name)]

    def sizes(self) -> dict[str, Size]:
        sizes = {part: Size(tables=len(self.tables(part))) for part in PARTS}
        for path, text in self.texts.items():
            if path.startswith(SQL + "/"):
                sizes[_first(FILES, path.removeprefix(SQL + "/"))] += _measure(text)
        return sizes


def now() -> Version:
    paths = [*(ROOT / SQL).rglob("*.sql"), ROOT / GOLDEN]
    return Version({str(path.relative_to(ROOT)): path.read_text() for path in paths})


def before() -> Version | None:
    """0.1.0, or None where the history does not reach so far back."""
    command = ["git", "-C", str(ROOT), "archive", "--format=tar", RELEASE, SQL, GOLDEN]
    try:
        packed = subprocess.run(command, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if member.isfile()}
        return Version({name: file.read().decode() for name, file in files.items() if file})


def _first(rules: tuple[tuple[str, str], ...], name: str) -> str:
    for part, pattern in rules:
        if re.match(pattern, name):
            return part
    raise SystemExit(f"tools/sql_size.py has no part for {name}.")


def _measure(text: str) -> Size:
    lines = text.splitlines()
    code = [line for line in lines if line.strip() and not line.lstrip().startswith("--")]
    functions = re.findall(r"(?im)^\s*create (?:or replace )?(?:function|procedure) menzil\.\w+", text)
    return Size(len(lines), len(code), len(functions))


def table(new: Version, old: Version) -> str:
    """The block of the page. A cell is 0.1.0 → now."""
    rows = [(part, old.sizes()[part], new.sizes()[part]) for part in PARTS]
    rows.append(("all", sum((row[1] for row in rows), Size()), sum((row[2] for row in rows), Size())))
    text = "| 0.1.0 → now | lines | without comments and blank ones | functions | tables |\n|---|---:|---:|---:|---:|\n"
    for part, was, size in rows:
        pairs = zip(was.row(), size.row(), strict=True)
        text += f"| {part} | " + " | ".join(f"{a:,} → {b:,}" if a or b else "" for a, b in pairs) + " |\n"
    counts = [(len(each.tables(ENGINE)), len(each.registers())) for each in (old, new)]
    names = " → ".join(f"{tables + registers} ({tables} tables, {registers} registers)" for tables, registers in counts)
    return text.replace(" |  |", " | |").replace(" |  |", " | |") + f"\nNames to learn for the engine: {names}.\n"


def block(page: str) -> str:
    """What the page says."""
    return page[page.index(HEAD) + len(HEAD) : page.index(TAIL)]


def main() -> int:
    old = before()
    if old is None:
        print(f"The history of this clone does not reach 0.1.0 ({RELEASE}), so nothing is compared.")
        for part, size in now().sizes().items():
            print(f"{part}: {size}")
        return 1 if "--write" in sys.argv else 0
    print(table(now(), old))
    if "--write" in sys.argv:
        page = PAGE.read_text()
        PAGE.write_text(page.replace(HEAD + block(page), HEAD + table(now(), old)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
