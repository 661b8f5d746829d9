"""Seeded bugs are noticed by the harness that finds nothing in the queue as it is: a check that cannot fail is none."""

from __future__ import annotations

import psycopg
import pytest

from tests.torture.mutants import MUTANTS
from tests.torture.mutants.hunt import hunt, leave_alone

#: Those that take little time and miss hardly ever.
QUICK = ("settle_before_delivery", "limit_without_lock", "no_reaper", "fifo_without_earlier", "attempts_at_failure")
SEED = 11


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
    assert len(changed) >= len(mutant.edits)
    assert changed or mutant.worker or mutant.elsewhere


def _assert_caught(name: str) -> None:
    one = hunt(name, SEED)
    assert one.caught, f"seeds {one.seeds} found {dict(one.found)} and not {MUTANTS[name].expected}"


def _functions(dsn: str) -> set[tuple[str, str]]:
    text = """select p.oid::regprocedure::text, p.prosrc from pg_proc p
     where p.pronamespace = 'menzil'::regnamespace and p.prosrc is not null"""
    with psycopg.connect(dsn) as conn:
        return set(conn.execute(text).fetchall())
