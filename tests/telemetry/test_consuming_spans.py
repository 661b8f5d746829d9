"""Spans of those who dequeue by hand: receive, settle, process; and of those who send once more."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind

import menzil
from tests.telemetry.sdk import Sdk, links, measuring, place, said, traceparent


def test_a_dequeue_that_finds_nothing_has_no_span(mq: menzil.Menzil, sdk: Sdk) -> None:
    assert mq.dequeue() == []
    assert sdk.spans() == []


def test_a_dequeue_links_to_what_it_found(mq: menzil.Menzil, sdk: Sdk) -> None:
    for n in range(2):
        mq.send("billing", {"n": n})
    mq.dequeue(limit=10)
    receiving = sdk.one("receive billing")
    assert receiving.kind is SpanKind.CLIENT
    assert links(receiving) == [place(span) for span in sdk.spans("send billing")]
    assert said(receiving)["messaging.batch.message_count"] == 2
    assert "messaging.message.id" not in said(receiving)
    assert receiving.end_time is not None
    assert receiving.start_time is not None
    assert 0 < receiving.end_time - receiving.start_time < 60e9


def test_messages_of_programs_that_do_not_trace_are_received_without_links(mq: menzil.Menzil, sdk: Sdk) -> None:
    with psycopg.connect(mq.dsn) as conn:
        conn.execute("select menzil.send('billing', '{}')")
        for garbage in ('"x"', "7", '"00-0-0-0"', '"00-' + "0" * 32 + "-" + "0" * 16 + '-01"', "null", "{}"):
            text = f'{{"traceparent": {garbage}, "tracestate": 5}}'
            conn.execute("select menzil.send_with_options('billing', '{}', p_metadata => %s)", (text,))
    for message in mq.dequeue(limit=10):
        with menzil.processing(message):
            mq.complete(message)
    assert [links(span) for span in sdk.spans() if span.name != "complete billing"] == [[]] * 8


def test_settles_link_to_where_their_messages_came_from(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send_batch("billing", [{"n": n} for n in range(6)])
    created = [place(span) for span in sdk.spans("create")]
    one, two, three, *rest = mq.dequeue(limit=10)
    mq.complete(one)
    mq.fail(two, "the text of this error stays here", permanent=True)
    mq.defer(three, delay=60)
    mq.complete_many(rest[:1])
    mq.fail_many([(rest[1], menzil.Fail("no"))])
    mq.defer_many([(rest[2], menzil.Defer(60))])
    settles = [span for span in sdk.spans() if said(span)["messaging.operation.type"] == "settle"]
    assert [span.name for span in settles] == [f"{how} billing" for how in ("complete", "fail", "defer") * 2]
    assert {span.kind for span in settles} == {SpanKind.CLIENT}
    assert [links(span) for span in settles] == [[place] for place in created]
    assert said(settles[0])["messaging.message.id"] == str(one.id)
    assert "the text" not in "".join(span.to_json() for span in sdk.spans())


def test_a_lease_without_its_message_is_settled_without_a_channel(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", {})
    (message,) = mq.dequeue()
    mq.complete(menzil.Lease(message.id, message.attempt))
    assert links(sdk.one("complete")) == []


def test_a_lost_lease_is_an_error_of_the_settle(mq: menzil.Menzil, sdk: Sdk) -> None:
    with pytest.raises(menzil.LeaseError):
        mq.complete(menzil.Lease(1, 1))
    with pytest.raises(menzil.UsageError):
        mq.complete("no lease")  # type: ignore[arg-type]
    (span,) = sdk.spans()
    assert said(span)["error.type"].endswith("NotInFlightError")


def test_a_loop_with_next_has_a_span_for_each_half(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send_batch("billing", [{"n": n} for n in range(2)])
    done: list[menzil.Message] = []
    while True:
        done, late = mq.next(done)
        assert late == []
        if not done:
            break
    created = [place(span) for span in sdk.spans("create")]
    assert [links(span) for span in sdk.spans("receive")] == [[place] for place in created]
    assert [links(span) for span in sdk.spans("complete")] == [[place] for place in created]
    assert [span.parent for span in sdk.spans("receive")] == [None, None]


def test_work_on_a_message_by_hand_has_a_process_span(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", {})
    (message,) = mq.dequeue()
    with menzil.processing(message):
        mq.send("mail", {})
        mq.complete(message)
    process = sdk.one("process billing")
    assert process.kind is SpanKind.CONSUMER
    assert links(process) == [place(sdk.one("send billing"))]
    assert process.parent is None
    below = [span.name for span in sdk.spans() if span.parent and span.parent.span_id == place(process)[1]]
    assert below == ["send mail", "complete billing"]
    assert said(process)["messaging.menzil.wait_ms"] >= 0


def test_a_process_span_continues_the_trace_on_request(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", {})
    (message,) = mq.dequeue()
    with menzil.processing(message, menzil.Tracing(parent="creation")):
        pass
    process, sending = sdk.one("process billing"), sdk.one("send billing")
    assert process.parent is not None
    assert (process.parent.trace_id, process.parent.span_id) == place(sending)
    assert links(process) == []


def test_processing_does_nothing_in_a_program_that_does_not_trace(mq: menzil.Menzil) -> None:
    mq.send("billing", {})
    (message,) = mq.dequeue()
    with menzil.processing(message):
        assert trace.get_current_span() is trace.INVALID_SPAN


def test_the_context_survives_the_archive_a_redrive_and_a_replay(mq: menzil.Menzil, sdk: Sdk) -> None:
    sent = mq.send("billing", {"order": 1})
    created = sdk.one("send billing")
    (message,) = mq.dequeue()
    mq.fail(message, "no", permanent=True)
    with psycopg.connect(mq.dsn) as conn:
        (dlq_id,) = conn.execute("select id from menzil.dlq").fetchone() or ()
    redriven = mq.redrive_message(dlq_id)
    (again,) = mq.dequeue()
    assert again.id == redriven
    mq.complete(again)
    replayed = mq.replay_message(redriven)
    (third,) = mq.dequeue()
    assert third.id == replayed
    with menzil.processing(third):
        mq.complete(third)
    with psycopg.connect(mq.dsn) as conn:
        kept = conn.execute("select id, metadata ->> 'traceparent' from menzil.archive order by id").fetchall()
    assert kept == [(id, traceparent(created)) for id in (sent, redriven, replayed)]
    assert links(sdk.one("process billing")) == [place(created)]
    redrive, replay = sdk.one("redrive billing"), sdk.one("replay billing")
    for span in (redrive, replay):
        assert span.kind is SpanKind.PRODUCER
        assert said(span)["messaging.operation.type"] == "send"
        assert links(span) == [place(created)]
    assert said(redrive)["messaging.menzil.redrive_of"] == sent
    assert said(redrive)["messaging.message.id"] == str(redriven)
    assert said(replay)["messaging.menzil.replay_of"] == redriven


def test_many_are_sent_once_more_in_one_span(mq: menzil.Menzil, sdk: Sdk) -> None:
    for _ in range(2):
        mq.send("billing", {})
        (message,) = mq.dequeue()
        mq.fail(message, "no", permanent=True)
    sdk.clear()
    assert mq.redrive_endpoint("billing", limit=1) == 1
    assert mq.redrive_all() == 1
    for name in ("redrive billing", "redrive"):
        assert said(sdk.one(name))["messaging.batch.message_count"] == 1


def test_a_role_that_may_only_redrive_does_so_inside_its_transaction(mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", {})
    (message,) = mq.dequeue()
    mq.fail(message, "no", permanent=True)
    with psycopg.connect(mq.dsn) as conn:
        (dlq_id,) = conn.execute("select id from menzil.dlq").fetchone() or ()
        conn.execute("create role redriver")
        conn.execute("grant usage on schema menzil to redriver")
        conn.execute("grant execute on function menzil.redrive_message(bigint) to redriver")
        conn.execute("set local role redriver")
        mq.redrive_message(dlq_id, conn=conn)
        conn.execute("reset role")
        conn.execute("drop owned by redriver")
        conn.execute("drop role redriver")
    assert links(sdk.one("redrive")) == []
    assert len(mq.dequeue(limit=10)) == 1


def test_the_async_client_consumes_with_the_same_spans(db: str, sdk: Sdk) -> None:
    async def program() -> None:
        async with menzil.AsyncMenzil(db) as mq:
            await mq.channel_set("billing")
            for n in range(5):
                await mq.send("billing", {"n": n})
            one, two, three = await mq.dequeue(limit=3)
            await mq.complete(one)
            await mq.fail(two, "no", permanent=True)
            await mq.defer(three, delay=60)
            batch, _ = await mq.next(limit=2)
            await mq.complete_many(batch[:1])
            await mq.fail_many([(batch[1], menzil.Fail("no", retry=False))])
            await mq.redrive_endpoint("billing", limit=1)
            await mq.replay_message(one.id)

    asyncio.run(program())
    names = sdk.names()[5:]
    assert names == [
        "receive billing",
        "complete billing",
        "fail billing",
        "defer billing",
        "receive billing",
        "complete billing",
        "fail billing",
        "redrive billing",
        "replay billing",
    ]


def test_a_program_that_measures_counts_messages_and_times_calls(mq: menzil.Menzil) -> None:
    with measuring() as reader:
        mq.send_batch("billing", [{}] * 3)
        (first, *_) = mq.dequeue(limit=10)
        with menzil.processing(first):
            pass
        with pytest.raises(menzil.UnknownNameError):
            mq.send("nowhere", {})
        data = reader.get_metrics_data()
    assert data is not None
    found: dict[str, list[Any]] = {
        metric.name: list(metric.data.data_points)
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
    sent = {
        dict(point.attributes)["messaging.destination.name"]: point for point in found["messaging.client.sent.messages"]
    }
    assert sent["billing"].value == 3
    assert dict(sent["nowhere"].attributes)["error.type"].endswith("UnknownNameError")
    assert sum(point.value for point in found["messaging.client.consumed.messages"]) == 3 + 1
    (processed,) = found["messaging.process.duration"]
    assert processed.count == 1
    assert tuple(processed.explicit_bounds)[:2] == (0.005, 0.01)
    calls = {
        dict(point.attributes)["messaging.operation.name"] for point in found["messaging.client.operation.duration"]
    }
    assert calls == {"send", "receive"}
    attributes = [dict(point.attributes) for points in found.values() for point in points]
    assert not [one for one in attributes if "messaging.message.id" in one]
    (message,) = mq.peek("billing", 1) or [first]
    assert message.metadata is None  # a program that only measures has no trace to carry
