"""What an answer means, and what is kept of it."""

from __future__ import annotations

from uuid import uuid4

import pytest
from aiohttp import web

from menzil.deliver.protocol import Surroundings
from menzil.model.outcome import Complete
from tests.deliver.http.receivers import Answerer, Seen, polite
from tests.deliver.http.stage import LOOPBACK, completed, deliver, endpoint, failed, in_loop, message, protocol


def _says(status: int, text: str = "", **headers: str) -> Answerer:
    return lambda _: web.Response(status=status, text=text, headers=headers)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 206, 299])
@in_loop
async def test_every_2xx_is_a_delivery(status: int) -> None:
    async with polite(_says(status)) as receiver:
        assert await deliver(receiver.url) == Complete()


@in_loop
async def test_success_statuses_replace_2xx() -> None:
    async with polite(lambda seen: web.Response(status=int(seen.path[1:]))) as receiver:
        chosen = {"success_statuses": [202, 409, 302, 410]}
        for good in (202, 409, 302, 410):
            assert await deliver(f"{receiver.url}/{good}", **chosen) == Complete()
        assert failed(await deliver(f"{receiver.url}/200", **chosen)).retry is False
        assert failed(await deliver(f"{receiver.url}/500", **chosen)).retry is True


@in_loop
async def test_a_failure_keeps_status_excerpt_headers_and_correlation_id() -> None:
    known = uuid4()
    answer = _says(503, "down for\nmaintenance " + "x" * 3000, **{"X-Request-Id": "r-1", "Retry-After": "120"})
    async with polite(answer) as receiver:
        outcome = failed(await deliver(receiver.url, message(correlation_id=known)))
    assert outcome.retry == 120.0
    assert outcome.reason.startswith("HTTP 503 Service Unavailable: down for maintenance xxx")
    assert len(outcome.reason) < 250
    said = outcome.response
    assert said is not None
    assert said["status"] == 503
    assert 0 <= said["duration_ms"] < 5000
    assert said["body"].startswith("down for\nmaintenance xxx")
    assert len(said["body"]) == 2000
    assert said["headers"] == {"content-type": "text/plain; charset=utf-8", "retry-after": "120", "x-request-id": "r-1"}
    assert said["correlation_id"] == str(known)


@in_loop
async def test_an_answer_is_captured_when_the_endpoint_or_else_the_setting_says_so() -> None:
    async with polite() as receiver, protocol() as http:
        assert await http.deliver(message(), endpoint(receiver.url)) == Complete()
        told = completed(await http.deliver(message(), endpoint(receiver.url, capture_response=True)))
        assert told.response is not None
        assert (told.response["status"], told.response["body"]) == (200, "thank you")
        http.refresh(Surroundings(LOOPBACK | {"capture_response": "true"}, "test"))
        assert completed(await http.deliver(message(), endpoint(receiver.url))).response is not None
        assert await http.deliver(message(), endpoint(receiver.url, capture_response=False)) == Complete()


@in_loop
async def test_what_is_no_text_is_named_and_not_stored() -> None:
    def picture(_: Seen) -> web.Response:
        return web.Response(status=500, body=b"\x89PNG" + bytes(96), content_type="image/png")

    async with polite(picture) as receiver:
        said = failed(await deliver(receiver.url)).response
        assert said is not None
        assert said["body"] == "(100 bytes of image/png)"


@in_loop
async def test_a_compressed_answer_stays_compressed() -> None:
    def zipped(_: Seen) -> web.Response:
        answer = web.Response(text="x" * 1000)
        answer.enable_compression(web.ContentCoding.gzip)
        return answer

    async with polite(zipped) as receiver:
        headers = {"Accept-Encoding": "gzip"}
        told = completed(await deliver(receiver.url, headers=headers, capture_response=True))
        assert told.response is not None
        assert told.response["body"].endswith("bytes, encoded as gzip)")
