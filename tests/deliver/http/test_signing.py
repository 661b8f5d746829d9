"""Signatures, held against the library that receivers use."""

from __future__ import annotations

import base64
import json
import os

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.deliver.http.receivers import Seen, polite
from tests.deliver.http.stage import completed, deliver, in_loop, message


def _secret(size: int = 32) -> str:
    return "whsec_" + base64.b64encode(os.urandom(size)).decode()


def _verify(secret: str, seen: Seen) -> object:
    return Webhook(secret).verify(seen.body, seen.headers)


@pytest.mark.parametrize("size", [24, 32, 64])
@in_loop
async def test_a_receiver_accepts_the_signature(size: int) -> None:
    secret = _secret(size)
    async with polite() as receiver:
        completed(await deliver(receiver.url, message({"name": "grün"}), signing={"secret": secret}))
        assert _verify(secret, receiver.last) == {"name": "grün"}


@in_loop
async def test_while_a_secret_is_rotated_both_are_good() -> None:
    new, old = _secret(), _secret()
    async with polite() as receiver:
        completed(await deliver(receiver.url, signing={"secrets": [new, old]}))
        seen = receiver.last
    assert len(seen.headers["webhook-signature"].split(" ")) == 2
    _verify(new, seen)
    _verify(old, seen)
    with pytest.raises(WebhookVerificationError):
        _verify(_secret(), seen)


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", None])
@in_loop
async def test_a_tampered_request_is_refused(header: str | None) -> None:
    secret = _secret()
    async with polite() as receiver:
        completed(await deliver(receiver.url, signing={"secret": secret}))
        seen = receiver.last
    if header is None:
        seen.body = seen.body.replace(b"42", b"43")
    elif header == "webhook-id":
        seen.headers[header] += "0"
    else:
        seen.headers[header] = str(int(seen.headers[header]) + 1)
    with pytest.raises(WebhookVerificationError):
        _verify(secret, seen)


@in_loop
async def test_every_attempt_is_signed_anew_under_the_same_id() -> None:
    secret = _secret()
    async with polite() as receiver:
        for attempt in (1, 2):
            sent = message(json.loads("{}"), attempt=attempt)
            completed(await deliver(receiver.url, sent, signing={"secret": secret}))
            _verify(secret, receiver.last)
