"""JSON Schema as the database enforces it: the same answers as the jsonschema package, over generated schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue

Json = Any

pytestmark = pytest.mark.slow

# Numbers that floats hold exactly: jsonb counts in decimals, Python in halves of halves.
NUMBERS = st.one_of(st.integers(-4, 4), st.integers(-8, 8).map(lambda n: n / 4), st.sampled_from([1.0, 10**20, -0.5]))
TEXTS = st.text("ab1é😀/~", max_size=4)
KEYS = st.sampled_from(["a", "b", "ab", "x1", "é", "", "a/b", "a~b"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=8,
)
# In both dialects the same; what differs is refused (below) or said in the documentation.
PATTERNS = st.sampled_from(
    ["^a", "b$", "^(a|b)+$", "[0-9]", "^.{2}$", "a?1", "^$", "\\d", "^[^ab]*$", "^[a-b]*$", "/", "(?!a)."]
)
TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"]
COUNTS = st.one_of(st.integers(0, 3), st.sampled_from([0.0, 2.0]))


def keywords(schemas: st.SearchStrategy[Json]) -> dict[str, st.SearchStrategy[Json]]:
    many = st.lists(schemas, min_size=1, max_size=3)
    named = st.dictionaries(KEYS, schemas, max_size=3)
    names = st.lists(KEYS, max_size=3, unique=True)
    return {
        "type": st.one_of(
            st.sampled_from(TYPES), st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
        ),
        "enum": st.lists(VALUES, max_size=4),
        "const": VALUES,
        "properties": named,
        "patternProperties": st.dictionaries(PATTERNS, schemas, max_size=2),
        "additionalProperties": schemas,
        # Names are texts: a schema about anything else says the same of all of them.
        "propertyNames": st.one_of(
            schemas, st.fixed_dictionaries({"pattern": PATTERNS}), st.fixed_dictionaries({"maxLength": COUNTS})
        ),
        "required": names,
        "dependentRequired": st.dictionaries(KEYS, names, max_size=2),
        "dependentSchemas": named,
        "minProperties": COUNTS,
        "maxProperties": COUNTS,
        "items": schemas,
        "prefixItems": many,
        "contains": schemas,
        "minContains": COUNTS,
        "maxContains": COUNTS,
        "minItems": COUNTS,
        "maxItems": COUNTS,
        "uniqueItems": st.booleans(),
        "minLength": COUNTS,
        "maxLength": COUNTS,
        "pattern": PATTERNS,
        "minimum": NUMBERS,
        "maximum": NUMBERS,
        "exclusiveMinimum": NUMBERS,
        "exclusiveMaximum": NUMBERS,
        "multipleOf": st.sampled_from([1, 2, 0.5, 0.25, 3]),
        "allOf": many,
        "anyOf": many,
        "oneOf": many,
        "not": schemas,
        "if": schemas,
        "then": schemas,
        "else": schemas,
        "unevaluatedProperties": schemas,
        "unevaluatedItems": schemas,
        "title": st.just("ignored"),
        "format": st.just("email"),
        "default": VALUES,
    }


def combined(schemas: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    known = keywords(schemas)
    return st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=4, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: known[name] for name in chosen})
    )


LEAVES: st.SearchStrategy[Any] = st.one_of(st.booleans(), st.just({}), combined(st.booleans()))
SCHEMAS = st.recursive(LEAVES, combined, max_leaves=6)
# A reference deeper into the payload, and one to a part of its own, on the way of everything else.
DOCUMENTS = st.builds(
    lambda whole, part, rest: {
        "$id": "https://example.com/whole",
        "allOf": [whole, {"$ref": "#/$defs/a~1b"}],
        "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#part"}, "é": {"$ref": "https://example.com/whole#part"}},
        "$defs": {"a/b": part},
        "definitions": {"%": {"$anchor": "part", "allOf": [{"$ref": "#/$defs/a%7E1b"}]}},
        **rest,
    },
    SCHEMAS,
    SCHEMAS,
    st.sampled_from([{}, {"unevaluatedProperties": False}, {"unevaluatedItems": {"type": "string"}}]),
)

FITS = """select array_agg(menzil._schema_fault(%s, u.value, %s, 0) is null order by u.n)
            from unnest(%s::jsonb[]) with ordinality u(value, n)"""


def mentioned(schema: Json) -> list[Json]:
    """Values that the schema itself names: what is drawn by chance hardly ever equals them."""
    if isinstance(schema, list):
        return [value for part in schema for value in mentioned(part)]
    if not isinstance(schema, dict):
        return []
    own = [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]
    return own + [{"a": value} for value in own] + [value for part in schema.values() for value in mentioned(part)]


def assert_same_answers(queue: Queue, schema: Json, values: list[Json]) -> None:
    values = [*values, *mentioned(schema)[:20]]
    judge = Draft202012Validator(schema)
    schema = queue.one("select menzil._resolve_references(%s)", Jsonb(schema))
    queue.one("select menzil._check_schema(%s)", Jsonb(schema))
    answers = queue.one(FITS, Jsonb(schema), Jsonb(schema), [Jsonb(value) for value in values])
    assert answers == [judge.is_valid(value) for value in values], (schema, values)


@pytest.mark.parametrize("schemas", [SCHEMAS, DOCUMENTS], ids=["schemas", "schemas with references"])
def test_the_database_and_jsonschema_agree(queue: Queue, schemas: st.SearchStrategy[Json]) -> None:
    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(schemas, st.lists(VALUES, min_size=1, max_size=6))
    def agree(schema: Json, values: list[Json]) -> None:
        assert_same_answers(queue, schema, values)

    agree()


SMALL = st.sampled_from([None, True, False, 0, 1, 1.0, 2, "1", "a", [], [1], [1.0], {}, {"a": 1}])
# Keywords that play together, and values of the kind they are about: among all values both are rare.
FAMILIES: dict[str, tuple[str, st.SearchStrategy[Json]]] = {
    "members": (
        "properties patternProperties additionalProperties propertyNames",
        st.dictionaries(KEYS, SMALL, max_size=4),
    ),
    "names": (
        "required dependentRequired dependentSchemas minProperties maxProperties",
        st.dictionaries(KEYS, SMALL, max_size=4),
    ),
    "items": ("prefixItems items", st.lists(SMALL, max_size=4)),
    "contains": ("contains minContains maxContains", st.lists(SMALL, max_size=4)),
    "arrays": (
        "uniqueItems minItems maxItems",
        st.lists(st.sampled_from([0, False, 1, 1.0, True, "1", [1], [1.0], {"a": 1}, {"a": 1.0}]), max_size=3),
    ),
    "texts": ("minLength maxLength pattern", TEXTS),
    "numbers": ("minimum maximum exclusiveMinimum exclusiveMaximum multipleOf", NUMBERS),
    "values": ("enum const type", SMALL),
    "choices": ("allOf anyOf oneOf not", SMALL),
    "conditions": ("if then else", SMALL),
    "members that are left": (
        "properties patternProperties allOf anyOf oneOf if then dependentSchemas unevaluatedProperties",
        st.dictionaries(KEYS, SMALL, max_size=4),
    ),
    "items that are left": (
        "prefixItems contains minContains allOf anyOf not if else unevaluatedItems",
        st.lists(SMALL, max_size=4),
    ),
    "words": ("title format default", SMALL),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_keywords_that_play_together_agree(queue: Queue, family: str) -> None:
    names, values = FAMILIES[family]
    inner = st.one_of(st.booleans(), st.fixed_dictionaries({"type": st.sampled_from(TYPES)}), LEAVES)
    known = keywords(inner)
    rules = st.fixed_dictionaries({}, optional={name: known[name] for name in names.split()})

    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(rules, st.lists(values, min_size=4, max_size=12))
    def agree(schema: Json, values: list[Json]) -> None:
        assert_same_answers(queue, schema, values)

    agree()


def test_no_keyword_is_left_out_of_the_comparison(queue: Queue) -> None:
    enforced = {row.keyword for row in queue.all("select keyword from menzil._schema_keywords()")}
    compared = {name for names, _ in FAMILIES.values() for name in names.split()}
    described = {"$schema", "$id", "$comment", "description", "examples", "deprecated", "readOnly", "writeOnly"}
    described |= {"contentEncoding", "contentMediaType", "contentSchema"}
    described |= {"discriminator", "nullable", "example", "externalDocs", "xml"}
    assert enforced == compared | described | {"$ref", "$defs", "definitions", "$anchor"}
