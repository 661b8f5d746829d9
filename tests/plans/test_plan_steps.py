"""A step of a plan reads what it moves, however many dead letters, ended messages and other plans there are."""

from __future__ import annotations

import psycopg
import pytest

from bench import fill
from bench.buffers import shared
from tests.plans import rules
from tests.plans.calls import ROUNDS
from tests.plans.capture import Capture, Plan
from tests.plans.conftest import NewDb

SHALLOW, DEEP = 3_000, 30_000
CHUNK = 100

pytestmark = pytest.mark.slow

_FAIL = """
select count(*) from (select array_agg(id) as ids, array_agg(num_attempts) as attempts
                        from menzil.message_dequeue(60000, %s, array['c0']) having count(*) > 0) d
  cross join lateral menzil.message_fail(d.ids, d.attempts, array_fill(%s::text, array[cardinality(d.ids)]))"""
_COMPLETE = """
select count(*) from (select array_agg(id) as ids, array_agg(num_attempts) as attempts
                        from menzil.message_dequeue(60000, %s) having count(*) > 0) d
  cross join lateral menzil.message_complete(d.ids, d.attempts)"""

#: Kinds with their filters; what they step through is there in plenty.
PLANS = {
    "redrive of a channel": ("redrive", '{"channel": "c0"}'),
    "redrive of a cause": ("redrive", """{"channel": "c0", "cause_hash": "<cause>"}"""),
    "redrive of all": ("redrive", '{"all": true}'),
    "replay": ("replay", '{"channel": "c1"}'),
    "replay of a status": ("replay", '{"channel": "c1", "status": "completed"}'),
}


def grow(conn: psycopg.Connection, count: int) -> None:
    """So many dead letters of two causes in c0, and half as many ended messages in each of c0 and c1, mixed."""
    for part in range(0, count, 1000):
        if part % 5000 == 0:
            fill.backlog(conn, "c0", 5000)
        conn.execute(_FAIL, (1000, f"[PERMANENT] HTTP {400 + part // 1000 % 2} no"))
    fill.spread(conn, 0, count, 2)
    while conn.execute(_COMPLETE, (1000,)).fetchone() != (0,):
        pass


def begin(conn: psycopg.Connection, kind: str, where: str) -> int:
    """Let a plan run. It counts, which reads all there is to count, so its plans are not looked at."""
    cause = conn.execute("select cause_hash from menzil.dlq_causes('c0', 1)").fetchone()
    assert cause is not None
    made = conn.execute("select menzil.plan_create(%s, %s)", (kind, where.replace("<cause>", cause[0]))).fetchone()
    assert made is not None
    conn.execute("select menzil.plan_run(%s)", made)
    return int(made[0])


def look(dsn: str) -> list[Plan]:
    """Plans of every step, of taking back, of the job, and of looking at a plan that runs."""
    capture = Capture(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        for name, (kind, where) in PLANS.items():
            number = begin(conn, kind, where)
            for _ in range(ROUNDS):
                assert capture.run("select menzil.plan_step(%s, %s)", (number, CHUNK)) == [(CHUNK,)], name
                capture.run("select * from menzil.plan_outcome(%s)", (number,))
                capture.run("select * from menzil.plan_targets(%s)", (number,))
            assert capture.run("select menzil.plan_stop(%s, true)", (number,)) == [(ROUNDS * CHUNK,)], name
            capture.run("select menzil._step_plans(1000)")
        fill.backlog(conn, "c9", 1000)
        number = begin(conn, "cancel", '{"channel": "c9"}')
        conn.execute("select menzil.plan_step(%s, 1)", (number,))  # writes down all that waits
        for _ in range(ROUNDS):
            assert capture.run("select menzil.plan_step(%s, %s)", (number, CHUNK)) == [(CHUNK,)]
        capture.run("select menzil.plan_stop(%s)", (number,))
    capture.close()
    return capture.plans


@pytest.fixture(scope="module")
def shallow(new_db: NewDb) -> str:
    """A short history that is not analyzed. It takes seconds, so others begin with a copy of it."""
    dsn = new_db()
    with psycopg.connect(dsn, autocommit=True) as conn:
        fill.channels(conn, 10)
        grow(conn, SHALLOW)
    return dsn


@pytest.fixture(scope="module")
def grown(new_db: NewDb, shallow: str) -> str:
    """The same, analyzed, and ten times as long since."""
    dsn = new_db(shallow)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("analyze")
        grow(conn, DEEP)
    return dsn


@pytest.fixture(scope="module", params=["never analyzed", "analyzed shallow", "grown since", "analyzed deep"])
def plans(request: pytest.FixtureRequest, new_db: NewDb, shallow: str) -> tuple[list[Plan], frozenset[str]]:
    deep = request.param in ("grown since", "analyzed deep")
    dsn = new_db(request.getfixturevalue("grown") if deep else shallow)
    with psycopg.connect(dsn, autocommit=True) as conn:
        found = conn.execute("select sequencename from pg_sequences where schemaname = 'menzil'").fetchall()
        if request.param in ("analyzed shallow", "analyzed deep"):
            conn.execute("analyze")
    return look(dsn), frozenset(name for (name,) in found)


def test_no_step_reads_a_whole_table(plans: tuple[list[Plan], frozenset[str]]) -> None:
    assert rules.whole_tables(*plans) == set()


def test_no_step_walks_through_a_whole_index(plans: tuple[list[Plan], frozenset[str]]) -> None:
    assert rules.whole_indexes(plans[0]) == set()


def test_no_step_joins_tables_by_hash_or_merge(plans: tuple[list[Plan], frozenset[str]]) -> None:
    assert rules.joins(plans[0]) == set()


def test_no_step_is_compiled(plans: tuple[list[Plan], frozenset[str]]) -> None:
    assert rules.compiled(plans[0]) == set()


def pages_of(conn: psycopg.Connection, name: str) -> float:
    """Pages per message that a step of this plan reads."""
    number = begin(conn, *PLANS[name])
    found = [shared(conn, "select menzil.plan_step(%s, %s)", (number, CHUNK)) for _ in range(ROUNDS)]
    conn.execute("select menzil.plan_stop(%s, true)", (number,))
    return min(found) / CHUNK


@pytest.fixture(scope="module")
def long(new_db: NewDb, shallow: str) -> dict[str, float]:
    """Pages of every plan with a long history, in which each was stopped before, and so were the plans before it."""
    with psycopg.connect(new_db(shallow), autocommit=True) as conn:
        for name in PLANS:
            pages_of(conn, name)
        grow(conn, DEEP)
        return {name: pages_of(conn, name) for name in PLANS}


@pytest.mark.parametrize("name", PLANS)
def test_pages_of_a_step_stay_the_same_as_history_grows(
    new_db: NewDb, shallow: str, long: dict[str, float], name: str
) -> None:
    # In a database of its own: plans that were stopped before would add to the pages that the others are compared with.
    with psycopg.connect(new_db(shallow), autocommit=True) as conn:
        short = pages_of(conn, name)
    assert long[name] <= 1.5 * short, f"{short:.1f}, then {long[name]:.1f} pages per message"
