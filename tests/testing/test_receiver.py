"""The receiver: real requests of the real deliverer, verified, and answered as badly as told."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from standardwebhooks.webhooks import Webhook

import menzil
from menzil.testing import Receiver, drain


@pytest.fixture
def receiver(client: menzil.Menzil) -> Iterator[Receiver]:
    found = Receiver(client)
    yield found
    found.close()


def test_a_receiver_fails_as_told_and_a_hurry_passes_every_wait(client: menzil.Menzil, receiver: Receiver) -> None:
    receiver.endpoint("partner", path="/hooks", timeout_seconds=2)
    client.set_retry_policy("partner", {"max_retries": 20})
    receiver.fail(11, status=500)  # opens the circuit
    receiver.fail(status=429, retry_after=600)  # and asks for a rest
    receiver.close_connection()
    receiver.slow(4)
    client.send("partner", {"order": 42})
    done = drain(menzil.Worker(), hurry=True)
    assert (done.completed, done.retried, done.waiting) == (1, 14, 0)
    statuses = [request.status for request in receiver.wait(15)]
    assert statuses == [*[500] * 11, 429, None, 204, 204], "a slow answer comes too late for its try"
    last = receiver.requests[-1]
    assert (last.path, last.json, last.attempt, last.verified) == ("/hooks", {"order": 42}, 15, True)
    assert Webhook(receiver.secret).verify(last.body, dict(last.headers)) == {"order": 42}


def test_a_request_with_a_wrong_signature_is_refused(client: menzil.Menzil, receiver: Receiver) -> None:
    other = "whsec_" + base64.b64encode(b"o" * 32).decode()
    receiver.endpoint("forger", signing={"secret": other})
    client.set_retry_policy("forger", {"max_retries": 0})
    receiver.answer(200, "hello", {"x-kind": "plain"})
    client.send("forger", {"order": 42})
    drain(menzil.Worker(), hurry=True)
    assert [(request.verified, request.status) for request in receiver.requests] == [(False, 401)]
    where = urlsplit(receiver.url)
    browser = HTTPConnection(str(where.hostname), where.port, timeout=60)
    browser.request("GET", "/")
    assert browser.getresponse().status == 401, "a request without a signature"
    with pytest.raises(AssertionError, match="2 requests came, not 3"):
        receiver.wait(3, timeout=0.05)
