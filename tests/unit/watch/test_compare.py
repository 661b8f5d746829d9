"""Two values side by side: every difference has a path, and equal parts are folded."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menzil.model import exact
from menzil.watch.compare import compare, count, same


def rows(a: Any, b: Any) -> list[tuple[Any, ...]]:
    return [
        (row["path"], row["change"], row["a"], row["b"]) for row in compare(a, b)["rows"] if row["change"] != "equal"
    ]


@pytest.mark.parametrize(
    ("a", "b", "differences"),
    [
        ({"x": 1}, {"x": 1}, []),
        ({"x": 1}, {"x": 2}, [("$.x", "changed", 1, 2)]),
        ({"x": 1}, {}, [("$.x", "removed", 1, None)]),
        ({}, {"x": None}, [("$.x", "added", None, None)]),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, [("$.a.b[1]", "changed", 2, 3)]),
        ([2, 3, 4], [1, 2, 3, 4], [("$[0]", "added", None, 1)]),
        ([1, 2, 3], [1, 3], [("$[1]", "removed", 2, None)]),
        ({"a b": 1}, {}, [('$["a b"]', "removed", 1, None)]),
        ({"ä": 1, "1": 1}, {}, [("$.ä", "removed", 1, None), ('$["1"]', "removed", 1, None)]),
        ({"x": 1}, {"x": True}, [("$.x", "changed", 1, True)]),
        ({"x": 0}, {"x": False}, [("$.x", "changed", 0, False)]),
        ({"x": "1"}, {"x": 1}, [("$.x", "changed", "1", 1)]),
        ({"x": []}, {"x": {}}, [("$.x", "changed", [], {})]),
        (1, 2, [("$", "changed", 1, 2)]),
        (None, {"x": 1}, [("$", "changed", None, {"x": 1})]),
        ([{"id": 1, "n": 1}, {"id": 2}], [{"id": 1, "n": 2}, {"id": 2}], [("$[0].n", "changed", 1, 2)]),
    ],
)  # fmt: skip
def test_differences_have_paths(a: Any, b: Any, differences: list[Any]) -> None:
    assert rows(a, b) == differences
    assert compare(a, b)["equal"] == (differences == [])
    assert compare(a, b)["differences"] == len(differences)


def test_equal_parts_are_folded_with_their_size() -> None:
    found = compare({"same": {"a": [1, 2, 3]}, "x": 1}, {"same": {"a": [1, 2, 3]}, "x": 2})
    assert [(row["path"], row["change"], row["size"]) for row in found["rows"]] == [
        ("$.same", "equal", 3),
        ("$.x", "changed", 1),
    ]


def test_the_order_of_keys_is_no_difference() -> None:
    assert compare({"a": 1, "b": [{"x": 1, "y": 2}]}, {"b": [{"y": 2, "x": 1}], "a": 1})["equal"]


def test_numbers_are_compared_by_all_their_digits() -> None:
    a, b = exact.loads('{"n": 0.1000000000000000055}'), exact.loads('{"n": 0.1}')
    assert not compare(a, b)["equal"]
    assert json.loads("0.1000000000000000055") == 0.1  # a float would not have seen it


def test_a_long_comparison_is_cut_but_counted() -> None:
    found = compare({str(n): n for n in range(5000)}, {})
    assert (found["differences"], len(found["rows"]), found["cut"]) == (5000, 2000, True)


def test_values_nested_deeper_than_the_stack_are_compared() -> None:
    def nested(leaf: int) -> Any:
        value: Any = leaf
        for _ in range(5_000):
            value = {"a": value}
        return value

    found = compare(nested(1), nested(2))
    assert found["differences"] == 1
    assert found["rows"][0]["path"].count(".a") == 100
    assert compare(nested(1), nested(1))["equal"]


LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=2)


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON values with these leaves."""
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=4)
    )


VALUES = nested(LEAVES)


@given(VALUES)
def test_a_value_is_equal_to_itself(value: Any) -> None:
    found = compare(value, json.loads(json.dumps(value)))
    assert found["equal"]
    assert sum(row["size"] for row in found["rows"]) == count(value)


@given(VALUES, VALUES)
def test_a_comparison_the_other_way_round_finds_as_many_differences(a: Any, b: Any) -> None:
    assert compare(a, b)["equal"] == compare(b, a)["equal"] == same(a, b)
    assert same(a, b) == (json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True))


@given(nested(LEAVES | st.decimals(allow_nan=False, allow_infinity=False)))
def test_exact_json_is_read_back_as_it_was(value: Any) -> None:
    for indent in (None, 2):
        assert same(exact.loads(exact.dumps(value, indent=indent)), value)


@given(VALUES)
def test_exact_json_is_written_as_python_writes_it(value: Any) -> None:
    assert exact.dumps(value) == json.dumps(value, ensure_ascii=False)
    assert exact.dumps(value, indent=2) == json.dumps(value, ensure_ascii=False, indent=2)


@pytest.mark.parametrize(
    "text", ["1.10", "100000000000000000000000.000000000000000000001", "0.00", "-0.0", "9" * 5000, f"1{'0' * 200}.5"]
)
def test_numbers_come_out_as_they_went_in(text: str) -> None:
    assert exact.dumps(exact.loads(text)) == text
    assert isinstance(exact.loads(text), Decimal)
