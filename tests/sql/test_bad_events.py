"""Whatever is wrong with a call about events: its documented SQLSTATE, one sentence, one hint, and nothing written."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.sql.emptying import empty
from tests.sql.queue import Queue
from tests.sql.refusing import refused_cleanly

MB = "repeat('k', 1000000)"
LONG = "to_jsonb(repeat('x', 2047))"
INJECTION = "'x''; drop table menzil.message; --'"
EVENT = """array['{{"event_type": "placed", "payload": 1, {}}}'::jsonb]"""

UNKNOWN = [
    *(
        call.format(name)
        for name in ("'nobody'", "''", "'Placed'", MB, INJECTION, "E'two\\nlines'")
        for call in (
            "publish({}, '{{}}')",
            "validate_event({}, '{{}}')",
            "drop_event_type({})",
            "subscribe({}, 'work')",
            "subscribe('placed', {})",
            "unsubscribe({}, 'work')",
            "unsubscribe('placed', {})",
            "publish_batch(array[jsonb_build_object('event_type', {}, 'payload', 1)])",
        )
    ),
    "unsubscribe(987654321)",
    "unsubscribe(-1)",
    """publish_batch(array['{"event_type": "placed", "payload": 1}', '{"event_type": "x", "payload": 1}']::jsonb[])""",
]

NULLS = [
    "create_event_type(null)",
    "drop_event_type(null)",
    "subscribe(null, 'work')",
    "subscribe('placed', null)",
    "unsubscribe(null)",
    "unsubscribe(null, 'work')",
    "unsubscribe('placed', null)",
    "validate_event(null, '{}')",
    "validate_event('placed', null)",
    "publish(null, '{}')",
    "publish('placed', null)",
    "publish('placed', '{}', null)",
    "publish_batch(null)",
    "publish_batch(array[null]::jsonb[])",
    """publish_batch(array['{"event_type": "placed"}'::jsonb])""",
    """publish_batch(array['{"payload": 1}'::jsonb])""",
    """publish_batch(array['{"event_type": null, "payload": 1}'::jsonb])""",
]

VALUES = [
    "create_event_type('')",
    "create_event_type(repeat('n', 201))",
    "create_event_type(E'a\\nb')",
    "create_event_type('x', repeat('d', 2001))",
    "create_event_type('x', null, 'null')",
    "create_event_type('x', null, '[]')",
    "create_event_type('x', null, '\"object\"')",
    "create_event_type('placed', null, '{\"minimun\": 1}')",
    "create_event_type('x', null, jsonb_build_object('title', repeat('t', 70000)))",
    f"create_event_type('x', null, jsonb_build_object({MB}, 1))",
    "create_event_type('x', null, jsonb_build_object('properties', jsonb_build_object(repeat('k', 60000), 1)))",
    "subscribe('placed', 'work', 'null')",
    "subscribe('placed', 'work', '[]')",
    "subscribe('placed', 'work', '\"a\"')",
    "subscribe('placed', 'work', jsonb_build_object('a', repeat('x', 9000)))",
    "publish('checked', '[]')",
    "publish('checked', '{\"id\": 1.5}')",
    "validate_event('checked', '{}')",
    *(f"publish('placed', '{{}}', {priority})" for priority in (-1, 11, 2147483647)),
    *(f"publish('placed', '{{}}', p_scheduled_at := '{at}')" for at in ("infinity", "-infinity", "20000-01-01")),
    *(f"publish('placed', '{{}}', p_expires_at := '{at}')" for at in ("infinity", "0044-03-15 BC")),
    "publish('placed', '{}', p_scheduled_at := '2030-01-02', p_expires_at := '2030-01-01')",
    *(
        f"publish('placed', '{{}}', p_{key}_key := {value})"
        for key in ("ordering", "idempotency")
        for value in ("''", MB)
    ),
    "publish('placed', '{}', p_headers := '{\"bad name\": \"a\"}')",
    "publish('placed', '{}', p_headers := '{\"X-A\": \"two\\r\\nlines\"}')",
    "publish('placed', '{}', p_metadata := '[]')",
    "publish_batch(array['1'::jsonb])",
    "publish_batch(array['[]'::jsonb])",
    """publish_batch(array_fill('{"event_type": "placed", "payload": 1}'::jsonb, array[10001]))""",
    *(
        f"publish_batch({EVENT.format(option)})"
        for option in (
            '"prio": 1',
            '"channel": "work"',
            '"endpoint": "work"',
            '"p_priority": 1',
            '"priority": "high"',
            '"priority": 1.5',
            '"priority": 11',
            '"priority": 99999999999',
            '"correlation_id": "x"',
            '"scheduled_at": "soon"',
            '"scheduled_at": "infinity"',
            '"expires_at": "2030-02-31"',
            '"headers": []',
            '"headers": {"X-A": 1}',
            '"metadata": 1',
            '"ordering_key": ""',
            '"idempotency_key": ""',
        )
    ),
]

CALLS = [
    (state, call)
    for state, calls in (
        ("42704", UNKNOWN),
        ("22004", NULLS),
        ("22023", VALUES),
        ("55000", ["subscribe('placed', 'closed')"]),
        (
            "54000",
            [
                f"publish('placed', {LONG})",
                f"publish_batch(array[jsonb_build_object('event_type', 'placed', 'payload', {LONG})])",
                f"publish('placed', '{{}}', p_metadata := jsonb_build_object('a', {LONG}))",
            ],
        ),
        (
            "23505",
            [
                "publish('placed', '{\"other\": 1}', p_idempotency_key := 'used')",
                "publish_batch({})".format(EVENT.format('"idempotency_key": "used"')),
            ],
        ),
        (
            "53400",
            ["publish('packed', '{}')", """publish_batch(array['{"event_type": "packed", "payload": 1}'::jsonb])"""],
        ),
    )
    for call in calls
]


@pytest.fixture(scope="module")
def furnished(layer_db: str) -> Iterator[Queue]:
    """Events with and without a schema, subscribers of every kind, a used key; nothing of it may change."""
    with psycopg.connect(layer_db, autocommit=True) as conn:
        empty(conn)
        queue = Queue(conn)
        for name in ("work", "closed", "tight"):
            queue.call("channel_set", name)
        queue.call("channel_set", "tight", p_max_size=1)
        queue.send("closed")
        queue.send("tight")
        queue.call("channel_release", "closed")
        queue.call("create_event_type", "placed")
        queue.call("create_event_type", "packed")
        schema = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
        queue.call("create_event_type", "checked", None, schema)
        for event_type, channel in (("placed", "work"), ("checked", "work"), ("packed", "work"), ("packed", "tight")):
            queue.call("subscribe", event_type, channel)
        assert queue.call("publish", "placed", {}, p_idempotency_key="used") == 1
        queue.conn.execute("select menzil.set_setting('max_payload_size', '2048')")
        yield queue


@pytest.mark.parametrize(("state", "call"), CALLS)
def test_a_bad_call_is_refused_in_one_sentence_and_writes_nothing(furnished: Queue, state: str, call: str) -> None:
    refused_cleanly(furnished, state, call)
