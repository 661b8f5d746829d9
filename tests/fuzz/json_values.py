"""JSON that a stranger may pass: good objects with something wrong in them, odd values, and sheer size."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from tests.fuzz.plain_values import NAMES, quoted


class Token(str):
    """A number as it is written, where Python has none like it."""

    __slots__ = ()


TOKENS = [
    Token(text) for text in ("1e400", "-1e-400", "1" * 60, "-0", "0.1e1", "1.0", "10.000000000000000001", "1e131071")
]
TEXTS = [
    *(
        "",
        " ",
        "x",
        "work",
        "two\nlines",
        "\r\nX-Evil: 1",
        "\x01\x1f\x7f",
        "\x85\u2028",
        "\u202eabc",
        "👩‍🚀",
        "\uffff",
        "e\u0301",
    ),
    *(
        "%s $1 {0}",
        "'; drop",
        "2030-02-31",
        "infinity",
        "-infinity",
        "soon",
        "2030-01-01T00:00:00Z",
        "a" * 300,
        "#/$defs/a",
        "((((",
    ),
    *("http://[::1", "https://example.com/", "0044-03-15 BC", "294276-01-01", "epoch", "now", "tomorrow", "99:99", "$"),
]
NUMBERS = [0, 1, -1, 5, 10, 11, 2147483648, 9223372036854775808, 1.5, -0.5, 1e308, *TOKENS]
KEYS = [
    "",
    "a",
    "X-A",
    "url",
    "payload",
    "endpoint",
    "$secret",
    "$ref",
    "type",
    "ü",
    "a.b",
    "a" * 300,
    "priority",
    "properties",
]

HEADERS = {
    "X-A": "1",
    "Content-Type": "text/plain",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
OPTIONS: dict[str, Any] = {
    "priority": 3,
    "scheduled_at": "2030-01-01T00:00:00Z",
    "expires_at": "2031-01-01",
    "ordering_key": "k",
    "idempotency_key": "i",
    "correlation_id": "00000000-0000-0000-0000-000000000001",
    "headers": HEADERS,
    "metadata": {"subject": "s", "path_suffix": "a/b"},
}
CONFIGS: list[Any] = [
    {
        "url": "https://example.com/hook",
        "method": "PUT",
        "headers": HEADERS,
        "timeout_seconds": 5,
        "success_statuses": [200, 202],
    },
    {"url": "https://example.com/", "auth": {"type": "basic", "username": "u", "password": "p"}, "max_concurrency": 3},
    {"url": "https://example.com/", "auth": {"type": "bearer", "token": {"$secret": True}}, "tls": {"verify": False}},
    {
        "url": "http://192.0.2.1:8080/a?b=c",
        "auth": {"type": "oauth2", "token_url": "https://a.example/", "client_id": "i", "client_secret": "s"},
        "signing": {"secrets": ["whsec_" + "QUJD" * 8, {"$secret": True}]},
        "rate_limit": {"count": 5, "interval_ms": 1000},
    },
    {
        "url": "https://[2001:db8::1]/",
        "cloudevents": {"mode": "binary", "source": "s"},
        "proxy": {"url": "http://proxy.example:3128", "username": "u", "password": "p"},
        "connect_timeout_seconds": 0.5,
    },
    {"topic": "t", "size": 3},
]
SCHEMAS: list[Any] = [
    True,
    {
        "type": "object",
        "required": ["total"],
        "properties": {
            "total": {"type": "integer", "minimum": 0, "multipleOf": 0.01},
            "to": {"type": ["string", "null"]},
        },
        "additionalProperties": False,
        "patternProperties": {"^x-": {"maxLength": 3}},
    },
    {"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}, "$ref": "#/$defs/a", "minItems": 1, "uniqueItems": True},
    {
        "oneOf": [{"const": 1}, {"enum": [1, 2]}],
        "not": {"type": "string"},
        "if": {"minimum": 1},
        "then": {"maximum": 5},
    },
]
MEANT: dict[str, list[Any]] = {
    "p_config": CONFIGS,
    "p_headers": [HEADERS, {}],
    "p_metadata": [{"a": 1}, {"event_type": "e", "traceparent": "x"}],
    "p_schema": SCHEMAS,
    "p_filter": [{"total": 5}, {"to": {"a": [1, None]}}, {}],
    "p_policy": [
        {
            "max_retries": 3,
            "backoff": "linear",
            "base_delay_seconds": 5,
            "max_delay_seconds": 60,
            "increment_seconds": 1,
            "jitter": 0.5,
        },
        {"max_retries": 0, "backoff": "fixed", "jitter": True},
        {},
    ],
    "p_rules": [
        [
            {"path": "topic", "kind": "text", "minimum": 1, "maximum": 249},
            {"path": "size", "kind": "integer", "minimum": 0, "maximum": 5},
        ],
        [],
    ],
    "p_messages": [
        [{"endpoint": "work", "payload": {"total": 1}, **OPTIONS}, {"channel": "narrow", "payload": None}],
        [],
    ],
    "p_events": [
        {"event_type": "order.paid", "payload": {"total": 5}, **OPTIONS},
        {"event_type": "strict", "payload": {"total": 1}},
    ],
    "p_payload": [{"total": 5, "to": "x"}, 1, {"total": -1}, []],
    "p_responses": [{"status": 503, "duration_ms": 12, "body": "no", "headers": {"a": "b"}}],
}
MEANT["p_metadatas"], MEANT["p_payloads"] = MEANT["p_metadata"], MEANT["p_payload"]

LARGE = [
    "(repeat('[', 500) || repeat(']', 500))::jsonb",
    "(repeat('[', 5000) || repeat(']', 5000))::jsonb",
    """(repeat('{"properties":{"total":', 300) || 'true' || repeat('}}', 300))::jsonb""",
    """(repeat('{"not":', 3000) || 'true' || repeat('}', 3000))::jsonb""",
    """(repeat('{"items":', 150) || '{"type": "string"}' || repeat('}', 150))::jsonb""",
    "jsonb_build_object('total', repeat('x', 1100000))",
    "jsonb_build_object(repeat('n', 5000), repeat('v', 5000))",
    "(select jsonb_object_agg('X-' || n, n::text) from generate_series(1, 3000) n)",
    "(select jsonb_agg(n) from generate_series(1, 12000) n)",
]


def odd(random: Random, depth: int = 0) -> Any:
    """Return any JSON value."""
    kind = random.random()
    if kind < 0.35 or depth > 4:
        return random.choice([*TEXTS, *NAMES])
    if kind < 0.6:
        return random.choice(NUMBERS)
    if kind < 0.75:
        return random.choice([None, True, False])
    if kind < 0.87:
        return [odd(random, depth + 1) for _ in range(random.randrange(4))]
    return {random.choice(KEYS): odd(random, depth + 1) for _ in range(random.randrange(4))}


def spoiled(random: Random, good: Any) -> Any:
    """Return it with one place changed, taken away or added to."""
    if random.random() < 0.25 or not isinstance(good, dict | list) or not good:
        return odd(random)
    if isinstance(good, list):
        at = random.randrange(len(good))
        return [*good[:at], spoiled(random, good[at]), *good[at + 1 :]]
    key = random.choice(list(good))
    rest = {name: value for name, value in good.items() if name != key}
    change = random.random()
    if change < 0.15:
        return rest
    if change < 0.3:
        return {**good, random.choice(KEYS): odd(random)}
    return {**rest, key: spoiled(random, good[key])}


def written(value: Any) -> str:
    """Return it as JSON text."""
    if isinstance(value, Token):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {written(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def json_value(random: Random, parameter: str, bad: bool) -> str:
    """Return an expression of jsonb for a parameter."""
    good = random.choice(MEANT.get(parameter, MEANT["p_payload"]))
    if not bad:
        return quoted(written(good))
    if random.random() < 0.1:
        return random.choice(LARGE)
    return quoted(written(spoiled(random, good)))
