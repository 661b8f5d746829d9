"""The rules for plans can fail: each catches the kind of statement it was written against."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plans import rules
from tests.plans.capture import Capture

NO_REGISTERS: frozenset[str] = frozenset()


@pytest.fixture
def capture(db: str) -> Iterator[Capture]:
    capture = Capture(db)
    capture.run("select menzil.channel_set('c0')")
    capture.run("select menzil.send_batch('c0', array_fill('1'::jsonb, array[50]))")
    capture.plans.clear()
    yield capture
    capture.close()


def test_a_table_read_whole_is_found(capture: Capture) -> None:
    capture.run("select count(*) from menzil.line where n > 5")
    assert len(rules.whole_tables(capture.plans, NO_REGISTERS)) == 1


def test_a_nested_statement_is_seen(capture: Capture) -> None:
    capture.conn.execute("do $$ begin perform count(*) from menzil.line where n > 5; end $$")
    assert len(rules.whole_tables(capture.plans, NO_REGISTERS)) == 1


def test_an_index_walked_from_end_to_end_is_found(capture: Capture) -> None:
    capture.conn.execute("set enable_seqscan = off")
    capture.run("select id from menzil.message where priority = 0 order by id")
    assert rules.whole_tables(capture.plans, NO_REGISTERS) == set()
    assert len(rules.whole_indexes(capture.plans)) == 1


@pytest.mark.parametrize("kind", ["hash", "merge"])
def test_a_join_that_reads_a_whole_side_is_found(capture: Capture, kind: str) -> None:
    for other in {"hash", "merge", "nestloop"} - {kind}:
        capture.conn.execute(f"set enable_{other}{'' if other == 'nestloop' else 'join'} = off")
    capture.run("select count(*) from menzil.message m join menzil.line n on n.first_id = m.id")
    assert len(rules.joins(capture.plans)) >= 1


def test_probes_by_key_are_no_complaint(capture: Capture) -> None:
    capture.conn.execute("set enable_seqscan = off")
    capture.run(
        "select m.priority from unnest('{1,2,3}'::bigint[]) u(id)"
        " cross join lateral (select m.priority from menzil.message m where m.id = u.id offset 0) m"
    )
    assert rules.whole_tables(capture.plans, NO_REGISTERS) | rules.whole_indexes(capture.plans) == set()
    assert rules.joins(capture.plans) == set()
    assert rules.sorts(capture.plans) == set()


@pytest.mark.parametrize("way", ["sort", "bitmap"])
def test_the_newest_version_of_a_lane_found_by_a_sort_or_a_bitmap_is_found(capture: Capture, way: str) -> None:
    capture.run("select menzil.maintain()")
    capture.plans.clear()
    for name in ("seqscan", "indexscan", "indexonlyscan") if way == "bitmap" else ("indexscan", "bitmapscan"):
        capture.conn.execute(f"set enable_{name} = off")
    capture.run("select v from menzil.lane where channel_id = 1 and rank = 10 order by v desc limit 1")
    assert len(rules.sorts(capture.plans)) >= 1
