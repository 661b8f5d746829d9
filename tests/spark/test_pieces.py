"""How a read is divided: every row in exactly one piece."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menzil.model.errors import UsageError
from menzil.spark.source import partitions, places
from menzil.spark.source.options import ReadOptions, number
from menzil.spark.source.partitions import Leaf, Piece

MARCH = "FOR VALUES FROM ('2026-03-01 00:00:00+00') TO ('2026-04-01 00:00:00+00')"


def blocks(piece: Piece, length: int) -> range:
    """The blocks a piece covers, by its condition."""
    words = (piece.condition or "").split(" and ")
    first = [int(word.split("(")[1].split(",")[0]) for word in words if word.startswith("ctid >=")]
    last = [int(word.split("(")[1].split(",")[0]) for word in words if word.startswith("ctid <")]
    return range(*(first or [0]), *(last or [length]))


@given(
    sizes=st.lists(st.integers(1, 100_000), min_size=1, max_size=6),
    wanted=st.none() | st.integers(1, 50),
)
def test_each_block_of_each_month_is_in_one_piece(sizes: list[int], wanted: int | None) -> None:
    leaves = [Leaf(oid, f"archive_{oid}", MARCH, size) for oid, size in enumerate(sizes)]
    pieces = list(partitions.of_leaves(leaves, wanted))
    for leaf in leaves:
        covered = [blocks(piece, leaf.blocks) for piece in pieces if piece.oid == leaf.oid]
        assert covered[0].start == 0
        assert covered[-1].stop == leaf.blocks
        assert all(one.stop == two.start for one, two in pairwise(covered))
    if wanted:
        assert len(pieces) <= 2 * wanted + len(leaves)


@given(low=st.integers(-(2**40), 2**40), span=st.integers(0, 2**40), count=st.integers(1, 64))
def test_each_key_is_in_one_range(low: int, span: int, count: int) -> None:
    pieces = list(partitions.of_key("queue", "id", low, low + span, count))
    edges = [word for piece in pieces for word in (piece.condition or "").split(" and ") if word]
    starts = [int(word.split(">= ")[1]) for word in edges if ">=" in word]
    ends = [int(word.split("< ")[1]) for word in edges if "< " in word]
    assert starts == ends == sorted(set(starts))
    assert len(pieces) == len(starts) + 1 <= count
    assert all(low < edge <= low + span for edge in starts)


def test_a_month_is_read_through_the_archive_and_the_rest_by_its_name() -> None:
    (month,) = partitions.of_leaves([Leaf(1, "archive_2026_03", MARCH, 1)], 1)
    (rest,) = partitions.of_leaves([Leaf(2, "archive_default", "DEFAULT", 1)], 1)
    assert month.source == "menzil.archive"
    assert "created_at >= '2026-03-01 00:00:00+00'::timestamptz" in (month.condition or "")
    assert (rest.source, rest.condition) == ('only menzil."archive_default"', None)
    assert partitions.select("id", rest, ["a", "b"]) == 'select id from only menzil."archive_default" where (a) and (b)'


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
    monkeypatch.delenv("MENZIL_DSN", raising=False)
    with pytest.raises(UsageError, match="No database was named"):
        ReadOptions.of({})
