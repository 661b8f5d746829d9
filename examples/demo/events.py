"""The scene about events: published once, delivered to all subscribers, and handled exactly once at home."""

from __future__ import annotations

import json

import psycopg

from examples.demo.stage import Stage
from examples.demo.webhooks import endpoint

SCHEMA = {
    "type": "object",
    "required": ["order", "country", "total"],
    "properties": {"order": {"type": "integer"}, "country": {"type": "string"}, "total": {"type": "number"}},
}
ORDERS = [("TR", 30), ("DE", 20), ("TR", 45), ("FR", 10), ("DE", 70), ("TR", 5)]


def publish(stage: Stage) -> None:
    """A schema guards the event, filters choose readers, and a handler's writes commit with the end of its message."""
    stage.title("An event with a schema, two webhooks and a handler")
    with stage.connect() as conn:
        conn.execute("create table points (try bigserial, order_id int, points numeric)")
    stage.mq.channel_set("points")
    stage.mq.set_retry_policy("points", {"max_retries": 5, "base_delay_seconds": 0.2})
    endpoint(stage, "ledger")
    endpoint(stage, "ankara")
    stage.ask("select menzil.create_event_type('order.paid', 'An order was paid', %s::jsonb)", json.dumps(SCHEMA))
    for name, wanted in (("ledger", None), ("ankara", '{"country": "TR"}'), ("points", None)):
        stage.ask("select menzil.subscribe('order.paid', %s, %s::jsonb)", name, wanted)
    made = [_publish(stage, {"order": n, "country": country, "total": total, "clumsy": n == 2})
            for n, (country, total) in enumerate(ORDERS, 1)]  # fmt: skip
    stage.say(f"six orders are published; messages for each: {', '.join(map(str, made))} (ankara wants TR only)")
    stage.check(made == [3, 2, 3, 2, 2, 3], "filters choose")
    bad = {"order": "seven", "country": "TR", "total": 1}
    said = stage.refused(lambda: _publish(stage, bad), psycopg.errors.InvalidParameterValue)
    stage.say(f"a seventh is refused: {said}")
    ids = _written_down(stage)
    stage.check(
        {name: len(ids[name]) for name in ids} == {"ledger": 6, "ankara": 3, "points": 6},
        "all got theirs",
    )
    stage.ended([one for channel in ids.values() for one in channel], "completed")
    tries, rows = points(stage)
    stage.say(f"the handler wrote {tries} times, once in vain: it failed after its insert, and that was rolled back")
    stage.say(f"rows in the shop's table: {len(rows)}, one per order")
    stage.check((tries, rows) == (7, [1, 2, 3, 4, 5, 6]), "a handler with a transaction has its effect exactly once")


def points(stage: Stage) -> tuple[int, list[int]]:
    """How often the handler wrote, as the sequence counts, which no rollback takes back; and the orders that stand."""
    ((tries,),) = stage.ask("select last_value from points_try_seq")
    return tries, [order for (order,) in stage.ask("select order_id from points order by 1")]


def _publish(stage: Stage, order: dict[str, object]) -> int:
    ((made,),) = stage.ask("select menzil.publish('order.paid', %s::jsonb)", json.dumps(order))
    return int(made)


def _written_down(stage: Stage) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for channel, message_id in stage.ask(
        """select channel, id from menzil.queue where metadata ->> 'event_type' = 'order.paid'
           union select channel, id from menzil.archive where metadata ->> 'event_type' = 'order.paid' order by 2"""
    ):
        found.setdefault(channel, []).append(message_id)
        stage.book.sent(channel, message_id)
    return found
