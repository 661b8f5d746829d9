"""Events as CloudEvents 1.0, in both modes."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from uuid import uuid4

from tests.deliver.http.receivers import polite
from tests.deliver.http.stage import completed, deliver, in_loop, message

BORN = datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC)


@in_loop
async def test_a_binary_event_has_its_attributes_in_headers() -> None:
    known = uuid4()
    sent = message(
        {"n": 1}, created_at=BORN, ordering_key='customer 7 "ü"', correlation_id=known,
        metadata={"event_type": "order.paid", "subject": "42"}, headers={"ce-id": "forged", "ce-tenant": "a"},
    )  # fmt: skip
    async with polite() as receiver:
        completed(await deliver(receiver.url, sent, cloudevents={"mode": "binary", "source": "//shop"}))
        headers, body = receiver.last.headers, receiver.last.body
    assert json.loads(body) == {"n": 1}
    assert {name: value for name, value in headers.items() if name.startswith("ce-")} == {
        "ce-specversion": "1.0",
        "ce-id": sent.wire_id,
        "ce-source": "//shop",
        "ce-type": "order.paid",
        "ce-time": "2026-01-02T03:04:05.000678Z",
        "ce-subject": "42",
        "ce-partitionkey": "customer%207%20%22%C3%BC%22",
        "ce-correlationid": str(known),
        "ce-tenant": "a",
    }
    assert headers["content-type"] == "application/json"
    assert headers["webhook-id"] == headers["ce-id"]


@in_loop
async def test_a_structured_event_is_one_document() -> None:
    sent = message({"n": "grün"}, created_at=BORN, ordering_key="k")
    async with polite() as receiver:
        completed(await deliver(receiver.url, sent, cloudevents={"mode": "structured", "type": "order.paid"}))
        assert receiver.last.headers["content-type"] == "application/cloudevents+json"
        assert json.loads(receiver.last.body) == {
            "specversion": "1.0",
            "id": sent.wire_id,
            "source": "/menzil/billing",
            "type": "order.paid",
            "time": "2026-01-02T03:04:05.000678Z",
            "partitionkey": "k",
            "datacontenttype": "application/json",
            "data": {"n": "grün"},
        }


@in_loop
async def test_bytes_travel_in_base64_and_keep_their_type() -> None:
    sent = message(content=b"\x00\xff", headers={"Content-Type": "image/png"})
    async with polite() as receiver:
        completed(await deliver(receiver.url, sent, cloudevents={"mode": "structured"}))
        event = json.loads(receiver.last.body)
        assert base64.b64decode(event["data_base64"]) == b"\x00\xff"
        assert (event["datacontenttype"], event["type"]) == ("image/png", "menzil.message")
        assert receiver.last.headers["content-type"] == "application/cloudevents+json"
        completed(await deliver(receiver.url, sent, cloudevents={"mode": "binary"}))
        assert (receiver.last.body, receiver.last.headers["content-type"]) == (b"\x00\xff", "image/png")
