"""What a receiver gets to see."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from importlib.metadata import version
from uuid import uuid4

import pytest

from menzil.deliver.http import Http
from menzil.deliver.protocol import Surroundings
from menzil.model.message import Message
from menzil.model.outcome import Complete
from tests.deliver.http.receivers import polite
from tests.deliver.http.stage import LOOPBACK, completed, deliver, endpoint, failed, in_loop, message, protocol

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@in_loop
async def test_a_message_arrives_as_a_post_with_its_id_and_attempt() -> None:
    async with polite() as receiver:
        sent = message({"order": 42}, attempt=3)
        assert await deliver(receiver.url + "/hook?tenant=a&b=%20", sent) == Complete()
        seen = receiver.last
    assert (seen.method, seen.path, json.loads(seen.body)) == ("POST", "/hook?tenant=a&b=%20", {"order": 42})
    assert seen.headers["host"] == receiver.url.removeprefix("http://")
    assert seen.headers["content-type"] == "application/json"
    assert seen.headers["user-agent"] == f"menzil/{version('menzil')}"
    assert seen.headers["x-menzil-attempt"] == "3"
    assert seen.headers["webhook-id"] == sent.wire_id
    assert abs(int(seen.headers["webhook-timestamp"]) - datetime.now(UTC).timestamp()) < 5
    assert seen.headers["accept-encoding"] == "identity"
    for absent in ("webhook-signature", "authorization", "cookie", "x-correlation-id", "transfer-encoding"):
        assert absent not in seen.headers


@in_loop
async def test_json_goes_out_byte_for_byte_as_the_database_gave_it() -> None:
    text = '{"a": 1.10, "b": "\u00fc", "deep": [[1e400]]}'.encode()
    row = (7, "billing", None, b"\x01" + text, None, 1, None, None, None, None, 0, 0, bytes(8), None, None, None, None)
    async with polite() as receiver:
        completed(await deliver(receiver.url, Message.from_row(row, json.loads)))
        assert receiver.last.body == text
        assert receiver.last.headers["webhook-id"] == "msg_7_0"


@in_loop
async def test_the_id_stays_over_retries_and_differs_between_databases() -> None:
    born = datetime(2026, 1, 1, tzinfo=UTC)
    first, again = (Message(1, "billing", {}, attempt=attempt, created_at=born) for attempt in (1, 2))
    elsewhere = Message(1, "billing", {}, created_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert first.wire_id == again.wire_id != elsewhere.wire_id
    assert re.fullmatch(r"msg_1_[0-9a-f]+", first.wire_id)
    raw = (833_000_000_123_456).to_bytes(8, "big")
    row = (9, "c", None, b"\x01{}", None, 1, None, None, None, None, 0, 0, raw, None, None, None, None)
    wrapped = Message.from_row(row, json.loads)
    assert wrapped.wire_id == Message(9, "c", {}, created_at=wrapped.created_at).wire_id


@in_loop
async def test_bytes_arrive_as_they_were_sent() -> None:
    content = bytes(range(256)) * 2000
    async with polite() as receiver:
        completed(await deliver(receiver.url, message(content=content)))
        assert receiver.last.body == content
        assert receiver.last.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "GET"])
@in_loop
async def test_the_method_of_the_endpoint_is_used_and_get_has_no_body(method: str) -> None:
    async with polite() as receiver:
        completed(await deliver(receiver.url, method=method))
        assert receiver.last.method == method
        assert (receiver.last.body == b"") == (method == "GET")
        assert ("content-type" in receiver.last.headers) == (method != "GET")


@in_loop
async def test_a_message_replaces_only_the_headers_that_its_endpoint_lists() -> None:
    async with polite() as receiver:
        sent = message(
            headers={"X-Tenant": "b", "X-Free": "b", "X-Only": "grün", "Content-Type": "application/vnd.x+json",
                     "User-Agent": "mine"}
        )  # fmt: skip
        config = {"headers": {"X-Tenant": "a", "x-free": "a", "X-Fixed": "1"}, "overridable_headers": ["X-FREE"]}
        completed(await deliver(receiver.url, sent, **config))
        headers = receiver.last.headers
    assert (headers["x-tenant"], headers["x-free"], headers["x-fixed"]) == ("a", "b", "1")
    assert headers["x-only"].encode("utf-8", "surrogateescape") == "grün".encode()
    assert (headers["content-type"], headers["user-agent"]) == ("application/vnd.x+json", "mine")


@in_loop
async def test_credentials_of_the_endpoint_stand_against_those_of_a_message() -> None:
    async with polite() as receiver:
        theirs = message(headers={"Authorization": "Bearer mine", "X-Api-Key": "mine"})
        auth = {"type": "bearer", "token": "endpoints"}
        completed(await deliver(receiver.url, theirs, auth=auth, headers={"X-Api-Key": "endpoints"}))
        assert receiver.last.headers["authorization"] == "Bearer endpoints"
        assert receiver.last.headers["x-api-key"] == "endpoints"
        completed(await deliver(receiver.url, theirs))
        assert receiver.last.headers["authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    "headers",
    [{"Host": "evil"}, {"content-length": "0"}, {"Transfer-Encoding": "chunked"}, {"Connection": "close"},
     {"Webhook-Id": "x"}, {"webhook-signature": "v1,x"}, {"X\r\nY": "1"}, {"X": "a\r\nY: b"}, {"X": "a\x00"},
     {"X": 5}, {"": "x"}, {"X Y": "1"}, {"X": "a\nb"}, {"X": "y" * 9000}],
)  # fmt: skip
@in_loop
async def test_a_header_that_would_change_the_request_is_refused_for_good(headers: dict[str, str]) -> None:
    async with polite() as receiver:
        for outcome in (
            failed(await deliver(receiver.url, message(headers=headers))),
            failed(await deliver(receiver.url, headers=headers)),
        ):
            assert outcome.retry is False
            assert "header" in outcome.reason.lower()
        assert receiver.seen == []


@in_loop
async def test_correlation_id_and_trace_are_passed_on() -> None:
    known = uuid4()
    async with polite() as receiver:
        sent = message(correlation_id=known, metadata={"traceparent": TRACE, "tracestate": "a=1"},
                       headers={"X-Correlation-Id": "other", "X-Menzil-Attempt": "99"})  # fmt: skip
        completed(await deliver(receiver.url, sent))
        headers = receiver.last.headers
        assert headers["x-correlation-id"] == str(known)
        assert headers["x-menzil-attempt"] == "1"
        assert (headers["traceparent"], headers["tracestate"]) == (TRACE, "a=1")
        completed(await deliver(receiver.url, message(headers={"traceparent": TRACE}, metadata={"traceparent": "x"})))
        assert receiver.last.headers["traceparent"] == TRACE
        completed(await deliver(receiver.url, message(metadata={"traceparent": "00-bad\r\nx: y"})))
        assert "traceparent" not in receiver.last.headers


@in_loop
async def test_a_path_suffix_is_appended_before_the_query() -> None:
    async with polite() as receiver:
        sent = message(metadata={"path_suffix": "/orders/42 ü/%41"})
        completed(await deliver(receiver.url + "/v1/?a=1", sent, allow_path_suffix=True))
        assert receiver.last.path == "/v1/orders/42%20%C3%BC/A?a=1"
        outcome = failed(await deliver(receiver.url, sent))
        assert outcome.retry is False
        assert "allow_path_suffix" in outcome.reason
        outcome = failed(await deliver(receiver.url, message(metadata={"path_suffix": "../x"}), allow_path_suffix=True))
        assert outcome.retry is False
        assert len(receiver.seen) == 1


@in_loop
async def test_a_changed_config_is_used_from_the_next_message_on() -> None:
    async with polite() as receiver, protocol() as http:
        old = endpoint(receiver.url + "/old")
        completed(await http.deliver(message(), old))
        new = type(old)(old.id, old.name, old.protocol, {"url": receiver.url + "/new"}, datetime.now(UTC))
        completed(await http.deliver(message(), new))
        assert [seen.path for seen in receiver.seen] == ["/old", "/new"]


@in_loop
async def test_settings_decide_whether_loopback_is_reached_and_may_change() -> None:
    async with polite() as receiver:
        http = Http(Surroundings({}, "test"))
        there = endpoint(receiver.url)
        refused = failed(await http.deliver(message(), there))
        assert refused.retry is False
        assert "127.0.0.1" in refused.reason
        http.refresh(Surroundings(LOOPBACK, "test"))
        completed(await http.deliver(message(), there))
        http.refresh(Surroundings({}, "test"))
        failed(await http.deliver(message(), there))
        http.refresh(Surroundings(LOOPBACK | {"http_allow_http": "false"}, "test"))
        assert "http_allow_http" in failed(await http.deliver(message(), there)).reason
        assert len(receiver.seen) == 1
        await http.close()


@in_loop
async def test_a_host_without_an_address_is_tried_again_and_a_bad_url_is_not() -> None:
    assert failed(await deliver("http://no-such-host.invalid/")).retry is True
    for url in (
        "ftp://127.0.0.1/",
        "http://user:pass@127.0.0.1/",
        "http://2130706433/",
        "http://127.0.0.1/#x",
        "nothing",
    ):
        assert failed(await deliver(url)).retry is False


@in_loop
async def test_metadata_that_cannot_be_read_ends_the_message_and_nothing_else() -> None:
    deep = b"\x01" + b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    row = (7, "billing", None, b"\x01{}", None, 1, None, None, deep, None, 0, 0, bytes(8), None, None, None, None)
    async with polite() as receiver:
        assert failed(await deliver(receiver.url, Message.from_row(row, json.loads))).retry is False
