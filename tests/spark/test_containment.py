"""A filter fits an event in Spark exactly when PostgreSQL says payload @> filter."""

from __future__ import annotations

import json
from decimal import Context, Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from menzil.model.errors import InvalidValueError
from menzil.spark.jobs.contain import contains, read
from menzil.spark.jobs.match import Matcher, Subscription, demand_shallow
from menzil.spark.jobs.refuse import json_problem

# Few keys and few values, so that payloads and filters meet; numbers in several spellings, texts that look alike.
KEYS = st.sampled_from(["a", "b", "A", "", "é", "e\u0301", "😀", 'q"uote'])
NUMBERS = st.sampled_from(
    ["0", "-0", "0.0", "1", "1.0", "1.00", "1e0", "10e-1", "100", "1e2", "1E+2", "0.1", "1e-1", "-1",
     "9007199254740993", "9007199254740992", "9007199254740993.0", "0.30000000000000004", "0.3",
     "1" + "0" * 400, "1e400"]
)  # fmt: skip
TEXTS = st.sampled_from(["", "a", "A", "1", "true", "null", "é", "e\u0301", "😀", "\\", '"', "\n"])
SCALARS = st.one_of(NUMBERS, TEXTS.map(json.dumps), st.sampled_from(["true", "false", "null"]))


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in members) + "}"  # equal keys may come twice


def _array(items: list[str]) -> str:
    return "[" + ",".join(items) + "]"


VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4).map(_array) | st.lists(st.tuples(KEYS, inner), max_size=4).map(_object),
    max_leaves=12,
)
OBJECTS = st.lists(st.tuples(KEYS, VALUES), max_size=4).map(_object)


def _part(value: Any, draw: Any) -> Any:
    """A filter that is likely to fit: some members, some elements in another order and number."""
    if isinstance(value, dict):
        return {key: _part(item, draw) for key, item in value.items() if draw(st.booleans())}
    if isinstance(value, list) and value:
        return [_part(item, draw) for item in draw(st.lists(st.sampled_from(value), max_size=4))]
    return value


def _written(value: Any) -> str:
    """JSON of what read() gave; numbers may be spelled in another way than they were."""
    match value:
        case dict():
            return _object([(key, _written(item)) for key, item in value.items()])
        case list():
            return _array([_written(item) for item in value])
        case Decimal():
            return str(value.normalize(Context(prec=500)))
        case _:
            return json.dumps(value)


@st.composite
def pairs(draw: Any) -> tuple[str, str]:
    """A payload and a filter; half of the filters are made from their payload."""
    payload = draw(OBJECTS | VALUES)
    if draw(st.booleans()) and payload.startswith("{"):
        return payload, _written(_part(read(payload), draw))
    return payload, draw(OBJECTS)


@pytest.fixture(scope="module")
def conn(server: Any) -> Any:
    with psycopg.connect(server.dsn, autocommit=True) as conn:
        yield conn


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(many=st.lists(pairs(), min_size=5, max_size=20))
def test_a_filter_fits_exactly_when_postgresql_says_so(
    conn: psycopg.Connection[Any], many: list[tuple[str, str]]
) -> None:
    payloads, filters = zip(*many, strict=True)
    texts = "unnest(%s::text[], %s::text[]) with ordinality u(p, f, n)"
    asked = f"select p::jsonb @> f::jsonb, (f::jsonb)::text from {texts} order by n"
    for (payload, wanted), (fits, stored) in zip(
        many, conn.execute(asked, (list(payloads), list(filters))), strict=True
    ):
        assert contains(read(payload), read(wanted)) == fits, (payload, wanted)
        # The index finds what a comparison with every filter would, from the filter as the database writes it.
        assert Matcher([Subscription("e", "x", stored)]).endpoints("e", read(payload)) == (["x"] if fits else [])


@pytest.mark.parametrize(
    ("payload", "wanted", "fits"),
    [
        ('{"a": 1}', '{"a": 1.0}', True),
        ('{"a": true}', '{"a": 1}', False),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": "1"}', '{"a": 1}', False),
        ('{"a": null}', '{"a": null}', True),
        ("{}", '{"a": null}', False),
        ('{"a": [1, 2, 3]}', '{"a": [3, 1, 1]}', True),
        ('{"a": [1, 2, 3]}', '{"a": 1}', False),
        ('{"a": [{"b": 1, "c": 2}]}', '{"a": [{"b": 1}]}', True),
        ('{"a": [[1, 2]]}', '{"a": [[2]]}', True),
        ('{"a": [1]}', '{"a": []}', True),
        ('{"a": {}}', '{"a": []}', False),
        ('{"a": 1, "a": 2}', '{"a": 2}', True),
        ('{"a": 1, "a": 2}', '{"a": 1}', False),
        ('{"a": "\\u00e9"}', '{"a": "é"}', True),
        ('{"a": "\\ud83d\\ude00"}', '{"a": "😀"}', True),
        ("[1]", "{}", False),
        ("1", "{}", False),
        ("{}", "{}", True),
    ],
)
def test_what_people_ask_about_filters(conn: psycopg.Connection[Any], payload: str, wanted: str, fits: bool) -> None:
    assert conn.execute("select %s::jsonb @> %s::jsonb", (payload, wanted)).fetchone() == (fits,)
    assert contains(read(payload), read(wanted)) == fits
    assert Matcher([Subscription("e", "x", wanted)]).endpoints("e", read(payload)) == (["x"] if fits else [])


@settings(max_examples=100, deadline=None)
@given(payload=OBJECTS, wanted=st.lists(st.tuples(st.sampled_from("xyz"), st.none() | OBJECTS), max_size=12))
def test_among_many_filters_none_is_missed_and_each_endpoint_is_named_once(
    payload: str, wanted: list[tuple[str, str | None]]
) -> None:
    subscriptions = [Subscription("e", endpoint, text) for endpoint, text in wanted]
    slowly = {one.endpoint for one in subscriptions if one.filter is None or contains(read(payload), read(one.filter))}
    assert Matcher(subscriptions).endpoints("e", read(payload)) == sorted(slowly)
    assert Matcher(subscriptions).endpoints("other", read(payload)) == []


def test_what_is_nested_deeper_than_python_follows_is_refused_before_a_task_meets_it() -> None:
    deep = '{"a":' * 1300 + "1" + "}" * 1300  # within the 8192 bytes that a filter may have
    with pytest.raises(InvalidValueError, match="'x' to 'e' is nested too deeply"):
        demand_shallow([Subscription("e", "y", None), Subscription("e", "x", deep)])
    demand_shallow([Subscription("e", "x", '{"a":' * 100 + "1" + "}" * 100)])
    assert (
        json_problem("[" * 100_000 + "]" * 100_000, 1 << 20)
        == "The payload is nested too deeply for this way of sending."
    )
