"""Spans of those who send, and the context that their messages carry."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import asyncpg
import psycopg
import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, SpanKind, TraceFlags
from psycopg.conninfo import conninfo_to_dict

import menzil
from menzil.telemetry.names import ATTRIBUTES, SPANS
from tests.telemetry.sdk import Sdk, installed, links, place, said, traceparent

#: Names of asyncpg and of libpq.
ASYNCPG = {"host": "host", "port": "port", "user": "user", "password": "password", "database": "dbname"}


def metadata_of(mq: menzil.Menzil, *channels: str) -> list[Any]:
    return [message.metadata for message in mq.dequeue(limit=1000, channels=channels or None)]


def test_a_message_carries_the_context_of_its_send_span(mq: menzil.Menzil, sdk: Sdk) -> None:
    with sdk.tracer.start_as_current_span("request") as request:
        sent = mq.send("billing", {"order": 42}, priority=3)
    span = sdk.one("send billing")
    assert span.kind is SpanKind.PRODUCER
    assert span.parent is not None
    assert span.parent.span_id == request.get_span_context().span_id
    (message,) = mq.dequeue()
    assert message.id == sent
    assert message.metadata == {"traceparent": traceparent(span)}
    found = said(span)
    assert found["messaging.system"] == "menzil"
    assert found["messaging.operation.name"] == found["messaging.operation.type"] == "send"
    assert found["messaging.destination.name"] == "billing"
    assert found["messaging.message.id"] == str(sent)
    assert found["messaging.menzil.priority"] == 3
    assert found["server.address"]
    assert found["server.port"]


def test_metadata_of_the_sender_stays_beside_the_context(mq: menzil.Menzil, sdk: Sdk) -> None:
    given = {"tenant": "a"}
    mq.send("billing", {}, metadata=given)
    assert metadata_of(mq) == [{"tenant": "a", "traceparent": traceparent(sdk.one("send billing"))}]
    assert given == {"tenant": "a"}


@pytest.mark.parametrize(
    "own",
    [
        {"metadata": {"traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}},
        {"metadata": {"traceparent": "mine"}},
        {"headers": {"Traceparent": "00-" + "a" * 32 + "-" + "b" * 16 + "-01"}},
    ],
)
def test_a_context_that_the_sender_gives_is_never_replaced(mq: menzil.Menzil, sdk: Sdk, own: Any) -> None:
    mq.send("billing", {}, **own)
    mq.send_many([{"channel": "billing", "payload": {}, **own}, menzil.Send("billing", {}, **own)])
    assert metadata_of(mq) == [own.get("metadata")] * 3


def test_a_program_without_an_sdk_sends_no_context(mq: menzil.Menzil) -> None:
    mq.send("billing", {})
    mq.send_many([{"channel": "billing", "payload": {}}])
    assert metadata_of(mq) == [None, None]


def test_a_context_from_elsewhere_is_passed_on_without_an_sdk(mq: menzil.Menzil) -> None:
    remote = SpanContext(0xA, 0xB, is_remote=True, trace_flags=TraceFlags(1))
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(remote)))
    try:
        mq.send("billing", {})
    finally:
        context.detach(token)
    assert metadata_of(mq) == [{"traceparent": f"00-{0xA:032x}-{0xB:016x}-01"}]


def test_baggage_and_other_contexts_stay_in_the_process(mq: menzil.Menzil, sdk: Sdk) -> None:
    token = context.attach(baggage.set_baggage("user", "ada"))
    try:
        mq.send("billing", {})
    finally:
        context.detach(token)
    (metadata,) = metadata_of(mq)
    assert list(metadata) == ["traceparent"]


def test_tracestate_travels_with_the_context(mq: menzil.Menzil, sdk: Sdk) -> None:
    state = trace.TraceState([("vendor", "v1")])
    parent = NonRecordingSpan(SpanContext(0xA, 0xB, is_remote=True, trace_flags=TraceFlags(1), trace_state=state))
    with trace.use_span(parent):
        mq.send("billing", {})
    assert metadata_of(mq)[0]["tracestate"] == "vendor=v1"


def test_a_message_whose_trace_is_not_sampled_says_so(mq: menzil.Menzil) -> None:
    from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

    with installed(sampler=ALWAYS_OFF) as sdk:
        mq.send("billing", {})
        assert sdk.spans() == []
        flags = metadata_of(mq)[0]["traceparent"].rpartition("-")[2]
        assert int(flags, 16) & 1 == 0


def test_a_body_of_bytes_is_sent_in_a_span_and_carries_no_context(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", b"bytes")
    assert sdk.names() == ["send billing"]
    assert metadata_of(mq) == [None]


def test_each_message_of_a_batch_has_a_creation_context(mq: menzil.Menzil, sdk: Sdk) -> None:
    ids = mq.send_many([menzil.Send("billing", {"n": n}, correlation_id=uuid.UUID(int=n)) for n in range(3)])
    created, sending = sdk.spans("create billing"), sdk.one("send billing")
    assert [span.kind for span in created] == [SpanKind.PRODUCER] * 3
    assert sending.kind is SpanKind.CLIENT
    assert links(sending) == [place(span) for span in created]
    assert said(sending)["messaging.batch.message_count"] == 3
    assert [said(span)["messaging.message.conversation_id"] for span in created] == [
        str(uuid.UUID(int=n)) for n in range(3)
    ]
    messages = mq.dequeue(limit=10)
    assert [message.id for message in messages] == ids
    assert [message.metadata for message in messages] == [{"traceparent": traceparent(span)} for span in created]


def test_a_batch_of_payloads_is_traced_like_any_other(mq: menzil.Menzil, sdk: Sdk) -> None:
    ids = mq.send_batch("billing", iter([{"n": 1}, {"n": 2}]), 7)
    messages = mq.dequeue(limit=10)
    assert [(message.id, message.payload["n"], message.priority) for message in messages] == [
        (ids[0], 1, 7),
        (ids[1], 2, 7),
    ]
    created = sdk.spans("create billing")
    assert [message.metadata for message in messages] == [{"traceparent": traceparent(span)} for span in created]


@pytest.mark.parametrize("create_spans", [True, False])
def test_a_large_batch_is_one_span_whose_context_all_carry(db: str, sdk: Sdk, create_spans: bool) -> None:
    count = 101 if create_spans else 2
    with menzil.Menzil(db, tracing=menzil.Tracing(create_spans=create_spans)) as mq:
        mq.channel_set("billing")
        mq.send_batch("billing", [{}] * count)
        span = sdk.one("send billing")
        assert span.kind is SpanKind.PRODUCER
        assert metadata_of(mq) == [{"traceparent": traceparent(span)}] * count


def test_a_batch_to_several_channels_names_none(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send_many([{"channel": "billing", "payload": {}}, {"endpoint": "mail", "payload": {}}])
    assert sdk.names() == ["create billing", "create mail", "send"]
    assert "messaging.destination.name" not in said(sdk.one("send"))


def test_an_empty_batch_has_no_span(mq: menzil.Menzil, sdk: Sdk) -> None:
    assert mq.send_many([]) == mq.send_batch("billing", []) == []
    assert sdk.spans() == []
    with pytest.raises(menzil.UnknownNameError):
        mq.send_batch("nowhere", [])


def test_all_copies_of_an_event_carry_the_publish_span(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.create_event_type("order.paid")
    for channel in ("billing", "mail"):
        mq.subscribe("order.paid", channel)
    assert mq.publish("order.paid", {"order": 1}) == 2
    assert mq.publish_batch([{"event_type": "order.paid", "payload": {}}] * 2) == 4
    one, many = sdk.spans("publish order.paid")
    assert one.kind is many.kind is SpanKind.PRODUCER
    assert said(one)["messaging.operation.type"] == "send"
    for channel in ("billing", "mail"):
        carried = [metadata["traceparent"] for metadata in metadata_of(mq, channel)]
        assert carried == [traceparent(span) for span in (one, many, many)]


@pytest.mark.parametrize("wrong", [{"channel": "nowhere"}, {"channel": None}, {"metadata": "no object"}])
def test_a_refused_send_is_an_error_without_its_text(mq: menzil.Menzil, sdk: Sdk, wrong: dict[str, Any]) -> None:
    call = {"channel": "billing", "payload": {}, **wrong}
    with pytest.raises(menzil.RefusedError) as refused:
        mq.send(**call)
    (span,) = sdk.spans()
    assert said(span)["error.type"].endswith(type(refused.value).__name__)
    assert span.status.status_code is trace.StatusCode.ERROR
    assert span.status.description is None
    assert list(span.events) == []


def test_what_is_no_message_is_refused_as_without_tracing(mq: menzil.Menzil, sdk: Sdk) -> None:
    wrong: Any
    for wrong in ([1], [{"payload": {}}], [{"channel": "billing"}], [{"channel": "billing", "payload": {}, "x": 1}]):
        with pytest.raises(menzil.MenzilError) as traced:
            mq.send_many(wrong)
        with menzil.Menzil(mq.dsn, tracing=False) as plain, pytest.raises(menzil.MenzilError) as refused:
            plain.send_many(wrong)
        assert str(traced.value) == str(refused.value)


def test_a_rolled_back_transaction_sends_no_context_either(mq: menzil.Menzil, sdk: Sdk) -> None:
    with psycopg.connect(mq.dsn) as conn:
        mq.send("billing", {}, conn=conn)
        conn.rollback()
        mq.send("billing", {}, conn=conn)
    first, second = sdk.spans("send billing")
    assert first.context != second.context
    assert metadata_of(mq) == [{"traceparent": traceparent(second)}]
    assert "server.address" not in said(second)


def test_the_async_client_traces_the_same(db: str, sdk: Sdk) -> None:
    async def program() -> list[Any]:
        async with menzil.AsyncMenzil(db) as mq:
            await mq.channel_set("billing")
            await mq.create_event_type("order.paid")
            await mq.subscribe("order.paid", "billing")
            parts = conninfo_to_dict(db)
            conn = await asyncpg.connect(**{ours: parts[theirs] for ours, theirs in ASYNCPG.items() if theirs in parts})
            async with conn.transaction():
                await mq.send("billing", {"n": 1}, conn=conn)
            await conn.close()

            async def request(n: int) -> None:
                with sdk.tracer.start_as_current_span(f"request {n}"):
                    await mq.send_batch("billing", [{"n": n}])

            await asyncio.gather(request(2), request(3))
            await mq.publish("order.paid", {"n": 4})
            await mq.publish_batch([{"event_type": "order.paid", "payload": {"n": 5}}])
            return [(message.payload["n"], message.metadata["traceparent"]) for message in await mq.dequeue(limit=10)]

    found = dict(asyncio.run(program()))
    by_request = {name: sdk.one(name) for name in ("request 2", "request 3")}
    for n in (2, 3):
        (created,) = [
            span
            for span in sdk.spans("create billing")
            if span.parent is not None and span.parent.span_id == place(by_request[f"request {n}"])[1]
        ]
        assert found[n] == traceparent(created)
    assert found[1] == traceparent(sdk.spans("send billing")[0])
    assert [found[n] for n in (4, 5)] == [traceparent(span) for span in sdk.spans("publish")]


def test_keys_are_told_only_on_request(db: str, sdk: Sdk) -> None:
    for tracing in (True, menzil.Tracing(keys=True)):
        with menzil.Menzil(db, tracing=tracing) as mq:
            mq.channel_set("billing")
            mq.send("billing", {}, ordering_key="customer-7", idempotency_key=f"order-{tracing!r}")
    quiet, open_ = sdk.spans("send billing")
    assert "customer-7" not in str(said(quiet))
    assert said(open_)["messaging.menzil.ordering_key"] == "customer-7"
    assert said(open_)["messaging.menzil.idempotency_key"].startswith("order-")


def test_channels_of_tenants_share_the_name_of_their_template(db: str, sdk: Sdk) -> None:
    def template(channel: str) -> str | None:
        return "mail-{tenant}" if channel.startswith("mail-") else None

    with menzil.Menzil(db, tracing=menzil.Tracing(template=template)) as mq:
        for name in ("mail-1", "billing"):
            mq.channel_set(name)
            mq.send(name, {})
    assert sdk.names() == ["send mail-{tenant}", "send billing"]
    assert said(sdk.one("send mail-{tenant}"))["messaging.destination.name"] == "mail-1"
    assert said(sdk.one("send mail-{tenant}"))["messaging.destination.template"] == "mail-{tenant}"


def test_tracing_can_be_turned_off(db: str, sdk: Sdk) -> None:
    with menzil.Menzil(db, tracing=False) as mq:
        mq.channel_set("billing")
        mq.send("billing", {})
        assert metadata_of(mq) == [None]
    assert sdk.spans() == []


@pytest.mark.parametrize("wrong", [{"parent": "child"}, {"template": "mail-{tenant}"}])
def test_a_way_of_tracing_that_does_not_exist_is_refused(wrong: Any) -> None:
    with pytest.raises(menzil.UsageError):
        menzil.Tracing(**wrong)
    with pytest.raises(menzil.UsageError):
        menzil.Menzil(tracing="yes")  # type: ignore[arg-type]


def test_every_attribute_is_in_the_table(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", {}, correlation_id=uuid.uuid4())
    mq.send_many([{"channel": "billing", "payload": {}}])
    kinds = {(one.name.partition(" ")[0], one.kind) for one in SPANS}
    for span in sdk.spans():
        assert said(span).keys() <= ATTRIBUTES.keys()
        assert (span.name.partition(" ")[0], span.kind.name) in kinds
