"""Event types: made, changed, dropped; the schema each may have, and how a payload that breaks it is refused."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue

ORDER: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "An order",
    "type": "object",
    "required": ["id", "lines"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "note": {"type": ["string", "null"], "maxLength": 3},
        "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}},
        "a/b~c": {"const": 1},
    },
    "$defs": {"line": {"type": "object", "required": ["sku"], "properties": {"sku": {"pattern": "^[A-Z]+$"}}}},
}


def events(queue: Queue) -> list[str]:
    return [
        row[0]
        for row in queue.all("select event_type from menzil.event_log where entity_type = 'event_type' order by id")
    ]


def refusal(queue: Queue, function: str, *params: Any) -> psycopg.errors.Diagnostic:
    with pytest.raises(psycopg.Error) as refused:
        queue.call(function, *params)
    assert refused.value.diag.message_hint
    return refused.value.diag


def test_an_event_type_is_listed_with_its_description_and_schema(queue: Queue) -> None:
    queue.call("create_event_type", "order.placed", "Somebody bought something.", ORDER)
    queue.call("create_event_type", "order.lost")
    rows = queue.all("select name, description, schema from menzil.event_types order by name")
    assert rows == [("order.lost", None, None), ("order.placed", "Somebody bought something.", ORDER)]
    assert events(queue) == ["event_type.created", "event_type.created"]


def test_creating_it_again_changes_what_is_different_and_nothing_else(queue: Queue) -> None:
    for _ in range(2):
        queue.call("create_event_type", "order.placed", "first", ORDER)
    assert events(queue) == ["event_type.created"]
    queue.call("create_event_type", "order.placed", "second", ORDER)
    queue.call("create_event_type", "order.placed", "second")
    assert queue.all("select description, schema from menzil.event_types") == [("second", None)]
    assert events(queue) == ["event_type.created", "event_type.changed", "event_type.changed"]
    assert queue.call("validate_event", "order.placed", {"anything": 1}) is True


def test_a_dropped_event_type_takes_its_subscriptions_along_and_leaves_the_messages(queue: Queue) -> None:
    queue.call("create_event_type", "order.placed")
    queue.call("subscribe", "order.placed", "work")
    assert queue.call("publish", "order.placed", {}) == 1
    queue.call("drop_event_type", "order.placed")
    assert queue.all("select 1 from menzil.subscriptions") == []
    assert queue.all("select 1 from menzil.event_types") == []
    assert queue.lease().metadata == {"event_type": "order.placed"}
    assert events(queue)[-1] == "event_type.dropped"
    assert refusal(queue, "publish", "order.placed", {}).sqlstate == "42704"
    assert refusal(queue, "drop_event_type", "order.placed").sqlstate == "42704"


@pytest.mark.parametrize(
    ("payload", "rule", "place"),
    [
        ({"lines": []}, 'required "id"', ""),
        ({"id": 1}, 'required "lines"', ""),
        ([], 'type "object"', ""),
        ({"id": "1", "lines": [{"sku": "A"}]}, 'type "integer"', "/id"),
        ({"id": 1.5, "lines": [{"sku": "A"}]}, 'type "integer"', "/id"),
        ({"id": 0, "lines": [{"sku": "A"}]}, "minimum 1", "/id"),
        ({"id": 1, "lines": []}, "minItems 1", "/lines"),
        ({"id": 1, "lines": [{"sku": "A"}, {"sku": "b"}]}, 'pattern "^[A-Z]+$"', "/lines/1/sku"),
        ({"id": 1, "lines": [{"sku": "A"}, {}]}, 'required "sku"', "/lines/1"),
        ({"id": 1, "lines": [{"sku": "A"}], "more": 1}, "additionalProperties false", "/more"),
        ({"id": 1, "lines": [{"sku": "A"}], "note": "four"}, "maxLength 3", "/note"),
        ({"id": 1, "lines": [{"sku": "A"}], "a/b~c": 2}, "const 1", "/a~1b~0c"),
    ],
)
def test_a_refusal_names_the_rule_and_the_place(queue: Queue, payload: Any, rule: str, place: str) -> None:
    queue.call("create_event_type", "order.placed", None, ORDER)
    for function in ("validate_event", "publish"):
        said = refusal(queue, function, "order.placed", Jsonb(payload))
        assert said.sqlstate == "22023"
        assert said.message_primary == f"The payload of event 'order.placed' breaks the rule {rule} at \"{place}\"."


@pytest.mark.parametrize("number", ["1", "1.0", "1e3", "10000000000000000000000000"])
def test_a_payload_that_fits_is_valid(queue: Queue, number: str) -> None:
    queue.call("create_event_type", "order.placed", None, ORDER)
    payload = f'{{"id": {number}, "note": null, "lines": [{{"sku": "A", "count": 2}}], "a/b~c": 1.0}}'
    assert queue.one("select menzil.validate_event('order.placed', %s::jsonb)", payload) is True


def test_a_refusal_says_nothing_of_the_payload(queue: Queue) -> None:
    queue.call("create_event_type", "order.placed", None, {"properties": {"card": {"maxLength": 3}}})
    said = refusal(queue, "publish", "order.placed", {"card": "4000123412341234"})
    assert "4000" not in f"{said.message_primary}{said.message_hint}{said.message_detail}"


def test_a_schema_may_go_on_below_itself_and_stops_at_a_depth(queue: Queue) -> None:
    queue.call("create_event_type", "tree", None, {"properties": {"next": {"$ref": "#"}, "leaf": {"type": "integer"}}})
    shallow: dict[str, Any] = {"leaf": "x"}
    deep: dict[str, Any] = {}
    for _ in range(50):
        shallow = {"next": shallow}
    for _ in range(300):
        deep = {"next": deep}
    assert "breaks the rule type" in refusal(queue, "validate_event", "tree", shallow).message_primary
    assert "nested deeper" in refusal(queue, "validate_event", "tree", deep).message_primary


def test_a_schema_that_is_true_or_false_is_a_schema_too(queue: Queue) -> None:
    queue.call("create_event_type", "open", None, Jsonb(True))
    queue.call("create_event_type", "shut", None, Jsonb(False))
    assert queue.call("validate_event", "open", Jsonb(1)) is True
    assert refusal(queue, "validate_event", "shut", {}).message_primary.endswith('breaks the rule false at "".')


def test_patterns_mean_the_same_in_every_locale(queue: Queue) -> None:
    queue.call("create_event_type", "word", None, {"pattern": "^\\w+$"})
    queue.call("create_event_type", "range", None, {"pattern": "^[a-z]+$"})
    assert queue.call("validate_event", "word", Jsonb("abc_1")) is True
    assert refusal(queue, "validate_event", "word", Jsonb("é")).sqlstate == "22023"
    assert refusal(queue, "validate_event", "range", Jsonb("aB")).sqlstate == "22023"


def test_a_large_schema_that_postgresql_compresses_is_enforced_all_the_same(queue: Queue) -> None:
    schema = {"properties": {f"member{n}": {"type": "integer", "description": "x" * 50} for n in range(400)}}
    queue.call("create_event_type", "wide", None, schema)
    assert queue.call("validate_event", "wide", {f"member{n}": n for n in range(400)}) is True
    assert refusal(queue, "validate_event", "wide", {"member399": "x"}).message_primary.endswith('at "/member399".')


REFUSED = [
    ({"items": {"$dynamicRef": "#x"}}, "'$dynamicRef'"),
    ({"dependencies": {"a": ["b"]}}, "'dependencies'"),
    ({"additionalItems": False}, "'additionalItems'"),
    ({"properties": {"a": {"requird": ["b"]}}}, "'requird'"),
    ({"X-note": 1}, "'X-note'"),
    ({"definitions": {"a": {"requird": ["b"]}}}, "'requird'"),
    ({"$defs": {"a": {"$anchor": "x"}, "b": {"$anchor": "x"}}}, "anchor 'x'"),
    ({"$anchor": "1x"}, '"/$anchor"'),
    ({"unevaluatedProperties": 1}, '"/unevaluatedProperties"'),
    ({"nullable": "yes"}, '"/nullable"'),
    ({"$schema": "http://json-schema.org/draft-07/schema#"}, "draft 2020-12"),
    ({"items": {"$id": "https://example.com/b"}}, "$id"),
    ({"$ref": "https://example.com/other"}, '"/$ref"'),
    ({"$ref": "other.json"}, '"/$ref"'),
    ({"$ref": "#/$defs/none"}, '"/$ref"'),
    ({"$ref": "#anchor"}, '"/$ref"'),
    ({"$ref": "#/enum/0", "enum": [{}]}, '"/$ref"'),
    ({"items": {"$ref": "#/$defs/a%20c"}, "$defs": {"a b": {}}}, '"/items/$ref"'),
    ({"$id": "https://example.com/a", "items": {"$ref": "https://example.com/b"}}, '"/items/$ref"'),
    ({"$ref": "#"}, "refers to itself"),
    ({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#/anyOf/0"}}}}, "refers to itself"),
    ({"type": "text"}, '"/type"'),
    ({"type": []}, '"/type"'),
    ({"type": ["string", "string"]}, '"/type"'),
    ({"type": None}, '"/type"'),
    ({"enum": "a"}, '"/enum"'),
    ({"required": ["a", "a"]}, '"/required"'),
    ({"required": [1]}, '"/required"'),
    ({"required": True}, '"/required"'),
    ({"dependentRequired": {"a": "b"}}, '"/dependentRequired/a"'),
    ({"properties": []}, '"/properties"'),
    ({"properties": {"a": 1}}, '"/properties/a"'),
    ({"items": [{}]}, '"/items"'),
    ({"prefixItems": []}, '"/prefixItems"'),
    ({"allOf": {}}, '"/allOf"'),
    ({"anyOf": [1]}, '"/anyOf/0"'),
    ({"minLength": -1}, '"/minLength"'),
    ({"minLength": 1.5}, '"/minLength"'),
    ({"maxItems": "3"}, '"/maxItems"'),
    ({"minimum": "0"}, '"/minimum"'),
    ({"multipleOf": 0}, '"/multipleOf"'),
    ({"uniqueItems": 1}, '"/uniqueItems"'),
    ({"title": 1}, '"/title"'),
    ({"pattern": "["}, '"/pattern"'),
    ({"pattern": "\\bword\\b"}, '"/pattern"'),
    ({"pattern": "^(.*)(.*)(.*)\\1\\2\\3$"}, "refers back to a group"),
    ({"patternProperties": {"(a)\\1": {}}}, "refers back to a group"),
    ({"pattern": "(?=.*x)y"}, "looks ahead from every place"),
    ({"pattern": "(?=.*x)y", "maxLength": 2001}, "looks ahead from every place"),
    ({"patternProperties": {"a(?!.*x)": {}}}, "looks ahead from every place"),
    ({"patternProperties": {"a(?!.*x)": {}}, "maxLength": 10}, "looks ahead from every place"),
    ({"pattern": "\\p{L}"}, '"/pattern"'),
    ({"pattern": "\\x41"}, '"/pattern"'),
    ({"pattern": "[[:alpha:]]"}, '"/pattern"'),
    ({"pattern": "***:a"}, '"/pattern"'),
    ({"patternProperties": {"(": {}}}, '"/patternProperties"'),
    ([], '""'),
    ("string", '""'),
    (None, '""'),
]


@pytest.mark.parametrize(("schema", "named"), REFUSED, ids=lambda value: str(value)[:50])
def test_a_schema_that_could_not_be_enforced_is_refused(queue: Queue, schema: Any, named: str) -> None:
    said = refusal(queue, "create_event_type", "order.placed", None, Jsonb(schema))
    assert said.sqlstate == "22023"
    assert named in said.message_primary
    assert queue.all("select 1 from menzil.event_types") == []


@pytest.mark.parametrize(
    ("pattern", "slow"),
    [
        (r"^(?=.*\d)(?=.*[a-z]).{8,}$", False),
        (r"^(?!.*\.\.)[a-z.]+$|^(?!x+)y", False),
        (r"^(?:(?=.*a)b|(?!.*c)d)e", False),
        (r"foo(?!bar)", False),
        (r"(a(?!x{3}))*", False),
        (r"^[a-z-]+(?<!-)$", False),
        (r"\(?=.*", False),
        (r"[(?=.*)]", False),
        (r"(?=.*x)y", True),
        (r"a(?!.*x)", True),
        (r"a(?=x{2,})", True),
        (r"^.*(?=.*x)y", True),
        (r"^(?:(?=.*a)b)*", True),
        (r"^(?=.*(?=.*x)y)", True),
        (r"^(?=.*a)|(?=.*b)", True),
        (r"^(x(?=((a)*)b))", True),
        ("(?=a)" * 1000, True),
    ],
)
def test_only_a_lookahead_that_is_tried_at_many_places_is_called_slow(queue: Queue, pattern: str, slow: bool) -> None:
    assert queue.one("select menzil._slow_lookahead(%s)", pattern) is slow
    queue.conn.execute("select '' ~ %s", [pattern if len(pattern) < 4096 else ""])  # it is one that PostgreSQL takes


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "(?=.*x)y", "maxLength": 2000},
        {"patternProperties": {"(?=.*x)y": {}}, "propertyNames": {"maxLength": 50}},
    ],
)
def test_a_lookahead_is_taken_where_texts_are_short(queue: Queue, schema: dict[str, Any]) -> None:
    queue.call("create_event_type", "order.placed", None, schema)
    assert queue.one("select menzil.validate_event('order.placed', '{\"a\": 1}')") is True


def test_a_mistyped_keyword_is_told_which_one_was_meant(queue: Queue) -> None:
    said = refusal(queue, "create_event_type", "order.placed", None, {"addtionalProperties": False})
    assert "Did you mean additionalProperties?" in (said.message_hint or "")


def test_a_schema_has_bounds_of_its_own(queue: Queue) -> None:
    nested: dict[str, Any] = {}
    for _ in range(70):
        nested = {"items": nested}
    doubling: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)}
    for schema, why in (
        (nested, "nested"),
        ({"$ref": "#/$defs/d0", "$defs": doubling | {"d30": {}}}, "unfold"),
        ({"title": "x" * 70_000}, "bytes"),
    ):
        assert why in (refusal(queue, "create_event_type", "big", None, schema).message_primary or "")


def test_what_tools_write_beside_a_schema_is_accepted_and_ignored(queue: Queue) -> None:
    notes = {
        "contentEncoding": "base64", "contentMediaType": "image/png", "contentSchema": {"type": "object"},
        "x-tenant": {"any": ["thing"]}, "discriminator": {"propertyName": "kind", "mapping": {}},
        "nullable": False, "example": 1, "externalDocs": {"url": "https://example.com"}, "xml": {"name": "a"},
    }  # fmt: skip
    queue.call("create_event_type", "noted", None, {"properties": {"a": {"type": "string", **notes}}, **notes})
    assert queue.call("validate_event", "noted", {"a": "not base64"}) is True
    assert "breaks the rule type" in (refusal(queue, "validate_event", "noted", {"a": 1}).message_primary or "")


def test_nullable_is_ignored_and_says_what_to_write_instead(queue: Queue) -> None:
    heard: list[tuple[str | None, ...]] = []

    def hear(said: psycopg.errors.Diagnostic) -> None:
        heard.append((said.severity, said.message_primary, said.message_hint))

    queue.conn.add_notice_handler(hear)
    schema = {"properties": {"a": {"type": "string", "nullable": True}, "b": {"type": ["null"], "nullable": True}}}
    try:
        queue.call("create_event_type", "nullable", None, schema)
    finally:
        queue.conn.remove_notice_handler(hear)
    assert heard == [
        (
            "WARNING",
            'The schema keyword nullable at "/properties/a" is ignored.',
            'Draft 2020-12 writes {"type": ["string", "null"]}.',
        )
    ]
    said = refusal(queue, "publish", "nullable", {"a": None}).message_primary or ""
    assert "nullable is not part of draft 2020-12: list null among the types" in said


def test_references_by_anchor_and_by_the_schemas_own_id_lead_to_the_same_place(queue: Queue) -> None:
    schema = {
        "$id": "https://example.com/order",
        "properties": {
            "a": {"$ref": "#line"},
            "b": {"$ref": "https://example.com/order#line"},
            "c": {"$ref": "https://example.com/order#/definitions/a%20line"},
            "d": {"$ref": "https://example.com/order"},
        },
        "definitions": {"a line": {"$anchor": "line", "type": "integer"}},
    }
    for _ in range(2):  # the same again changes nothing
        queue.call("create_event_type", "order.placed", None, schema)
    assert events(queue) == ["event_type.created"]
    assert queue.call("validate_event", "order.placed", {"a": 1, "b": 1, "c": 1, "d": {"a": 1}}) is True
    for payload, place in (({"a": ""}, "/a"), ({"b": ""}, "/b"), ({"c": ""}, "/c"), ({"d": {"a": ""}}, "/d/a")):
        said = refusal(queue, "validate_event", "order.placed", payload).message_primary or ""
        assert said.endswith(f'breaks the rule type "integer" at "{place}".')


@pytest.mark.parametrize(
    ("payload", "rule", "place"),
    [
        ({"kind": "a", "other": 1}, "unevaluatedProperties false", "/other"),
        ({"kind": "b", "list": [1, "x", "y"]}, 'type "integer"', "/list/2"),
    ],
)
def test_what_no_part_of_a_schema_speaks_of_is_named(queue: Queue, payload: Any, rule: str, place: str) -> None:
    rows = {"prefixItems": [{}, {"type": "string"}], "unevaluatedItems": {"type": "integer"}}
    schema = {
        "oneOf": [{"properties": {"kind": {"const": "a"}}}, {"properties": {"kind": {"const": "b"}, "list": {}}}],
        "allOf": [{"properties": {"list": rows}}],
        "unevaluatedProperties": False,
    }
    queue.call("create_event_type", "order.placed", None, schema)
    assert queue.call("validate_event", "order.placed", {"kind": "b", "list": [1, "x", 2]}) is True
    said = refusal(queue, "validate_event", "order.placed", payload)
    assert said.message_primary == f"The payload of event 'order.placed' breaks the rule {rule} at \"{place}\"."


def test_a_deep_payload_costs_each_level_once(queue: Queue) -> None:
    # Asked twice at each level, whether it fits and what it has seen, this would take 2 to the power of 60 steps.
    node = {"anyOf": [{"properties": {"next": {"$ref": "#"}}}, {"properties": {"end": {}}}],
            "unevaluatedProperties": False}  # fmt: skip
    queue.call("create_event_type", "tree", None, node)
    payload: dict[str, Any] = {}
    for _ in range(30):
        payload = {"next": payload}
    with queue.conn.transaction():
        queue.conn.execute("set local statement_timeout = '20s'")
        assert queue.call("validate_event", "tree", payload) is True
