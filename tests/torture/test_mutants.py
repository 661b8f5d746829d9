"""Seeded bugs are noticed by the harness that finds nothing in the queue as it is: a check that cannot fail is none."""

from __future__ import annotations

import re
from pathlib import Path

import psycopg
import pytest

from tests.torture.mutants import MUTANTS
from tests.torture.mutants.hunt import hunt, leave_alone

#: Those that take little time and miss hardly ever.
QUICK = ("settle_before_delivery", "limit_without_lock", "fifo_without_earlier", "head_past_run", "proof_without_late")
SEED = 11
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "guarantees.md"


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_seeded_bug_is_noticed(name: str) -> None:
    _assert_caught(name)


@pytest.mark.torture
@pytest.mark.parametrize("name", MUTANTS)
def test_each_seeded_bug_is_noticed(name: str) -> None:
    _assert_caught(name)


@pytest.mark.torture
@pytest.mark.parametrize("name", MUTANTS)
def test_nothing_is_noticed_in_the_same_run_without_the_bug(name: str) -> None:
    one = leave_alone(name, SEED)
    assert not one.found, "\n\n".join(one.stories)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_is_somewhere(name: str, db: str) -> None:
    """A bug whose place has moved would be noticed by nobody, and rightly so."""
    mutant = MUTANTS[name]
    before = _functions(db)
    mutant.apply(db)
    changed = {function for function, text in _functions(db) - before if function}
    assert len(changed) >= len(mutant.files)
    assert changed or mutant.worker or mutant.elsewhere


def _assert_caught(name: str) -> None:
    one = hunt(name, SEED)
    assert one.caught, f"seeds {one.seeds} found {dict(one.found)} and not {MUTANTS[name].expected}"


def _functions(dsn: str) -> set[tuple[str, str]]:
    text = """select p.oid::regprocedure::text, pg_get_functiondef(p.oid) from pg_proc p
     where p.pronamespace = 'menzil'::regnamespace and p.prokind in ('f', 'p')"""
    with psycopg.connect(dsn) as conn:
        return set(conn.execute(text).fetchall())


def test_page_lists_every_seeded_bug() -> None:
    text = PAGE.read_text().partition("### Bugs put in on purpose")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \| ", text, re.MULTILINE)
    assert [(name, sentence) for name, sentence, _ in rows] == [(n, m.sentence) for n, m in MUTANTS.items()]
    assert all(any(f"**{word} " in noticed for word in MUTANTS[name].expected) for name, _, noticed in rows)
    assert f"{len(MUTANTS)} bugs" in text
