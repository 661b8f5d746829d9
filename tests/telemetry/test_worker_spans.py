"""Spans of a worker: process around handlers and deliveries, the request that goes out, settles."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg
import pytest
import sqlalchemy
from opentelemetry import trace
from opentelemetry.trace import SpanKind
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.orm import sessionmaker

import menzil
from menzil.telemetry.names import ATTRIBUTES, SPANS
from tests.telemetry.sdk import Sdk, links, place, said, traceparent


def work(app: menzil.Worker) -> None:
    asyncio.run(app.serve(once=True))


def children(sdk: Sdk, parent: Any) -> list[str]:
    return [span.name for span in sdk.spans() if span.parent and span.parent.span_id == place(parent)[1]]


@contextmanager
def receiver(*statuses: int) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server that answers with these, the last one again and again; the headers of what arrived."""
    left, seen = list(statuses), list[dict[str, str]]()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/secret-path?token=x", seen
    finally:
        server.shutdown()
        server.server_close()


def let_http_in(dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        for name in ("http_allow_http", "http_allow_internal_urls"):
            conn.execute("select menzil.set_setting(%s, 'true')", (name,))


def test_a_handler_runs_inside_a_process_span(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", {"order": 1}, priority=4)
    app = menzil.Worker(db, endpoints=False, janitors=False, name="ada")

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        with sdk.tracer.start_as_current_span("inside"):
            await asyncio.sleep(0)

    work(app)
    process = sdk.one("process billing")
    assert process.kind is SpanKind.CONSUMER
    assert process.parent is None
    assert links(process) == [place(sdk.one("send billing"))]
    assert children(sdk, process) == ["inside"]
    found = said(process)
    assert found["messaging.client.id"] == "ada"
    assert found["messaging.menzil.attempt"] == 1
    assert found["messaging.menzil.outcome"] == "completed"
    assert found["messaging.menzil.priority"] == 4
    assert found["messaging.menzil.wait_ms"] >= 0
    settle = sdk.one("complete billing")
    assert settle.kind is SpanKind.CLIENT
    assert links(settle) == [place(process)]
    assert said(settle)["server.address"]


def test_a_function_in_a_thread_is_below_its_process_span(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send_batch("billing", [{"n": n} for n in range(3)])
    app = menzil.Worker(db, endpoints=False, janitors=False)

    @app.handler("billing")
    def bill(message: menzil.Message) -> None:
        mq.send("mail", message.payload)

    work(app)
    by_id = {said(span)["messaging.message.id"]: span for span in sdk.spans("process billing")}
    assert len(by_id) == 3
    mails = {message.payload["n"]: message.metadata for message in mq.dequeue(limit=10, channels="mail")}
    for span in by_id.values():
        assert children(sdk, span) == ["send mail"]
    sends = {traceparent(span) for span in sdk.spans("send mail")}
    assert {metadata["traceparent"] for metadata in mails.values() if metadata} == sends


def test_messages_after_each_other_share_no_context(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send_batch("billing", [{}] * 5)
    app = menzil.Worker(db, endpoints=False, janitors=False)
    seen: list[trace.SpanContext] = []

    @app.handler("billing", concurrency=1)
    async def bill(message: menzil.Message) -> None:
        seen.append(trace.get_current_span().get_span_context())

    work(app)
    assert len({context.trace_id for context in seen}) == 5
    assert [context.span_id for context in seen] == [place(span)[1] for span in sdk.spans("process billing")]
    assert trace.get_current_span() is trace.INVALID_SPAN


@pytest.mark.parametrize("how", ["raised", "returned", "deferred", "nonsense"])
def test_what_became_of_a_message_is_on_its_span(db: str, mq: menzil.Menzil, sdk: Sdk, how: str) -> None:
    mq.send("billing", {})
    app = menzil.Worker(db, endpoints=False, janitors=False)

    @app.handler("billing")
    async def bill(message: menzil.Message) -> Any:
        if how == "raised":
            raise LookupError("a text that may hold anything")
        answers = {"returned": menzil.Fail("no", retry=60), "deferred": menzil.Defer(60), "nonsense": 5}
        return answers[how]

    work(app)
    process = sdk.one("process billing")
    outcome = said(process)["messaging.menzil.outcome"]
    kinds = {"raised": "LookupError", "returned": "Fail", "deferred": None, "nonsense": "TypeError"}
    assert outcome == ("deferred" if how == "deferred" else "failed")
    assert said(process).get("error.type") == kinds[how]
    assert list(process.events) == []
    assert "a text" not in process.to_json()
    settle = sdk.one("defer billing" if how == "deferred" else "fail billing")
    assert links(settle) == [place(process)]


def test_a_handler_with_a_transaction_settles_below_its_process_span(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    parts = conninfo_to_dict(db)
    url = sqlalchemy.URL.create(
        "postgresql+psycopg",
        str(parts["user"]),
        str(parts.get("password") or "") or None,
        str(parts["host"]),
        int(parts["port"] or 5432),
        str(parts["dbname"]),
    )
    engine = sqlalchemy.create_engine(url)
    for channel in ("one", "two", "three"):
        mq.channel_set(channel)
        mq.send(channel, {})
    app = menzil.Worker(db, endpoints=False, janitors=False)

    @app.handler("one", transaction=True)
    async def one(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
        async with menzil.AsyncMenzil(db) as client:
            await client.send("mail", {}, conn=conn)

    @app.handler("two", transaction=True)
    def two(message: menzil.Message, conn: psycopg.Connection[Any]) -> menzil.Defer:
        return menzil.Defer(60)

    @app.handler("three", transaction=sessionmaker(engine))
    def three(message: menzil.Message, session: Any) -> None:
        mq.send("mail", {}, conn=session)

    work(app)
    engine.dispose()
    assert children(sdk, sdk.one("process one")) == ["send mail", "complete one"]
    assert children(sdk, sdk.one("process two")) == ["defer two"]
    assert children(sdk, sdk.one("process three")) == ["send mail", "complete three"]
    assert said(sdk.one("process two"))["messaging.menzil.outcome"] == "deferred"
    assert len(mq.dequeue(limit=10, channels="mail")) == 2


def test_a_worker_may_continue_the_trace_of_the_sender(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    with sdk.tracer.start_as_current_span("request") as request:
        mq.send("billing", {})
    app = menzil.Worker(db, endpoints=False, janitors=False, tracing=menzil.Tracing(parent="creation"))

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        pass

    work(app)
    process = sdk.one("process billing")
    assert process.parent is not None
    assert (process.parent.trace_id, process.parent.span_id) == place(sdk.one("send billing"))
    assert place(process)[0] == request.get_span_context().trace_id


def test_a_worker_that_should_not_trace_has_no_spans(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    mq.send("billing", {})
    sdk.clear()
    app = menzil.Worker(db, endpoints=False, janitors=False, tracing=False)

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        pass

    work(app)
    assert sdk.spans() == []


def test_an_sdk_that_on_start_installs_is_used(db: str, mq: menzil.Menzil) -> None:
    from tests.telemetry.sdk import installed

    mq.send("billing", {})
    app = menzil.Worker(db, endpoints=False, janitors=False)
    sdk = installed()
    made: list[Sdk] = []

    @app.on_start
    def start() -> None:
        made.append(sdk.__enter__())

    @app.on_stop
    def stop() -> None:
        assert made[0].names() == ["process billing", "complete billing"]
        sdk.__exit__(None, None, None)
        made.append(made[0])

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        pass

    work(app)
    assert len(made) == 2


def test_a_receiver_gets_the_context_of_the_request_that_reached_it(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    let_http_in(db)
    with receiver(503, 200) as (url, seen):
        mq.create_endpoint("partner", "http", {"url": url})
        mq.set_retry_policy("partner", {"base_delay_seconds": 0.01})
        mq.send("partner", {})
        app = menzil.Worker(db, janitors=False)
        while len(seen) < 2:  # a worker that works once does not wait for the retry
            work(app)
    first, second = sdk.spans("POST")
    assert [headers["traceparent"] for headers in seen] == [traceparent(first), traceparent(second)]
    tried = sdk.spans("process partner")
    assert [span.parent and span.parent.span_id for span in (first, second)] == [place(span)[1] for span in tried]
    assert {tuple(links(span)) for span in tried} == {(place(sdk.one("send partner")),)}
    assert [said(span)["messaging.menzil.outcome"] for span in tried] == ["failed", "completed"]
    assert said(tried[0])["error.type"] == said(first)["error.type"] == "503"
    assert said(first)["http.response.status_code"] == 503
    assert said(second)["http.request.resend_count"] == 1
    assert "error.type" not in said(second)
    assert first.kind is SpanKind.CLIENT
    assert "secret-path" not in first.to_json()
    assert said(first)["server.address"] == "127.0.0.1"


def test_a_receiver_of_a_program_that_does_not_trace_gets_the_context_of_the_message(
    db: str, mq: menzil.Menzil
) -> None:
    let_http_in(db)
    given = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    with receiver(200) as (url, seen):
        mq.create_endpoint("partner", "http", {"url": url})
        mq.send("partner", {}, metadata={"traceparent": given})
        work(menzil.Worker(db, janitors=False))
    assert [headers["traceparent"] for headers in seen] == [given]


def test_a_trace_that_the_sender_put_into_the_headers_goes_out_as_it_is(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    let_http_in(db)
    given = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    with receiver(200) as (url, seen):
        mq.create_endpoint("partner", "http", {"url": url})
        mq.send("partner", {}, headers={"traceparent": given})
        work(menzil.Worker(db, janitors=False))
    assert [headers["traceparent"] for headers in seen] == [given]
    assert links(sdk.one("process partner")) == [(int("a" * 32, 16), int("b" * 16, 16))]


def test_a_receiver_that_cannot_be_reached_is_named_by_class_alone(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    let_http_in(db)
    with receiver(200) as (url, _):
        pass
    mq.create_endpoint("partner", "http", {"url": url})
    mq.set_retry_policy("partner", {"max_retries": 0})
    mq.send("partner", {})
    work(menzil.Worker(db, janitors=False))
    request = sdk.one("POST")
    assert said(request)["error.type"].endswith("Error")
    assert request.status.description is None
    assert said(sdk.one("process partner"))["messaging.menzil.outcome"] == "failed"


def test_every_span_of_a_worker_is_in_the_table(db: str, mq: menzil.Menzil, sdk: Sdk) -> None:
    let_http_in(db)
    mq.send("billing", {}, ordering_key="k")
    tracing = menzil.Tracing(keys=True, body_size=True, template=lambda name: f"<{name}>")
    app = menzil.Worker(db, janitors=False, tracing=tracing)

    @app.handler("billing")
    async def bill(message: menzil.Message) -> None:
        pass

    with receiver(200) as (url, _):
        mq.create_endpoint("partner", "http", {"url": url})
        mq.send("partner", {})
        work(app)
    kinds = {(one.name.partition(" ")[0].replace("{method}", "POST"), one.kind) for one in SPANS}
    for span in sdk.spans():
        assert said(span).keys() <= ATTRIBUTES.keys()
        assert (span.name.partition(" ")[0], span.kind.name) in kinds
    process = sdk.one("process <billing>")
    assert said(process)["messaging.message.body.size"] > 0
    assert said(process)["messaging.menzil.ordering_key"] == "k"
