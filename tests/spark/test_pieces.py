"""How a read is divided: every row in exactly one piece."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menzil.model.errors import UsageError
from menzil.ops.choosing import LIBPQ_VARIABLES
from menzil.spark.source import partitions, places
from menzil.spark.source.options import ReadOptions, number
from menzil.spark.source.partitions import Month, Piece

MARCH = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC))


def month(oid: int = 1, blocks: int = 1, first: int = 1, last: int = 9, together: bool = True) -> Month:
    return Month(oid, f"archive_{oid}", *MARCH, blocks, first, last, together)


def ids(piece: Piece) -> range:
    """The ids a piece covers, by its condition."""
    (first,) = re.findall(r"\bid >= (\d+)", piece.condition or "")
    (end,) = re.findall(r"\bid < (\d+)", piece.condition or "")
    return range(int(first), int(end))


@given(
    sizes=st.lists(
        st.tuples(st.integers(0, 100_000), st.integers(1, 10**9), st.integers(1, 10**6)), min_size=1, max_size=6
    ),
    wanted=st.none() | st.integers(1, 50),
    few=st.booleans(),
)
def test_each_id_of_each_month_is_in_one_piece(
    sizes: list[tuple[int, int, int]], wanted: int | None, few: bool
) -> None:
    months = [month(oid, blocks, first, first + more) for oid, (blocks, first, more) in enumerate(sizes)]
    pieces = list(partitions.of_months(months, wanted, few))
    for each in months:
        covered = [ids(piece) for piece in pieces if piece.oid == each.oid]
        assert covered[0].start == each.first
        assert covered[-1].stop == each.last + 1
        assert all(one.stop == two.start for one, two in pairwise(covered))
    if wanted:
        assert len(pieces) <= 2 * wanted + len(months)


@given(low=st.integers(-(2**40), 2**40), span=st.integers(0, 2**40), count=st.integers(1, 64))
def test_each_key_is_in_one_range(low: int, span: int, count: int) -> None:
    pieces = list(partitions.of_key("queue", "id", low, low + span, count))
    edges = [word for piece in pieces for word in (piece.condition or "").split(" and ") if word]
    starts = [int(word.split(">= ")[1]) for word in edges if ">=" in word]
    ends = [int(word.split("< ")[1]) for word in edges if "< " in word]
    assert starts == ends == sorted(set(starts))
    assert len(pieces) == len(starts) + 1 <= count
    assert all(low < edge <= low + span for edge in starts)


def test_a_month_is_read_by_its_ends_as_they_came_or_by_its_messages_when_few_are_asked_for() -> None:
    (batches,) = partitions.of_months([month(first=5000, last=6000)], 1)
    (singles,) = partitions.of_months([month(together=False)], 1)
    (few,) = partitions.of_months([month()], 1, few=True)
    low, high = (f"'{at.isoformat()}'::timestamptz" for at in MARCH)
    bounds = f"created_at >= {low} and created_at < {high}"
    assert (batches.source, batches.settings) == ("menzil._ended", {})
    assert batches.condition == f"{bounds} and id >= 5000 and id < 6001 and lo_id > 904 and lo_id < 6001"
    assert batches.ends == "lo_id > 904 and lo_id < 6001"
    assert (singles.source, singles.settings["enable_nestloop"]) == ("menzil._ended_singly", "off")
    assert (singles.ends, few.ends) == (None, None)
    assert (few.source, few.condition) == ("menzil.archive", f"{bounds} and id >= 1 and id < 10")
    assert partitions.select("id", few, ["a", "b"]).endswith("id < 10) and (a) and (b)")


def test_a_run_of_the_feed_is_looked_for_in_the_months_of_its_ids() -> None:
    april = Month(2, "archive_2", MARCH[1], datetime(2026, 5, 1, tzinfo=UTC), 1, 8, 20, True)
    months = [month(first=1, last=9), april]
    assert "'2026-03-01" in str(partitions.window(months, 3, 7))
    assert "'2026-04-01" in str(partitions.window(months, 3, 7))
    assert "'2026-05-01" in str(partitions.window(months, 9, 9))
    assert "'2026-03-01" not in str(partitions.window(months, 10, 12))
    assert partitions.window(months, 21, 30) is None


def test_a_place_of_the_feed_survives_its_checkpoint() -> None:
    place = places.Place(2**40, 7, 3)
    assert places.Place.of(place.offset()) == place
    assert places.parse('{"xid": 5}', drop=2) == places.Place(5, 0, 2)
    for nonsense in ("soon", "{}", '{"xid": -1}', "[1]", '{"xid": "a"}'):
        with pytest.raises(UsageError, match="startingOffsets"):
            places.parse(nonsense, drop=0)
    with pytest.raises(UsageError, match="queue is no change feed"):
        places.feed("queue")


def test_options_are_checked_and_the_dsn_is_in_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    options = ReadOptions.of({"dsn": "password=canary", "numpartitions": "4"})
    assert options.partitions == 4
    assert "canary" not in repr(options)
    with pytest.raises(UsageError, match="numPartitions is 'many'"):
        number({"numpartitions": "many"}, "numPartitions")
    for name in ("MENZIL_DSN", *LIBPQ_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MENZIL_PG_DIR", "/nonexistent")
    with pytest.raises(UsageError, match="starts no embedded PostgreSQL, none runs in /nonexistent"):
        ReadOptions.of({})
