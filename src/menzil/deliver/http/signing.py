"""Standard Webhooks: each live secret makes one signature of id, time and body."""

from __future__ import annotations

import hmac
from base64 import b64decode
from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any


def signing_keys(signing: Mapping[str, Any] | None) -> list[hmac.HMAC]:
    """Return the keys of `signing.secret` or `signing.secrets`, ready to be copied for each message."""
    if not signing:
        return []
    secrets = signing.get("secrets") or [signing["secret"]]
    return [hmac.new(b64decode(secret.removeprefix("whsec_")), digestmod="sha256") for secret in secrets]


def signature(keys: list[hmac.HMAC], wire_id: str, timestamp: int, body: bytes) -> str:
    """Return the value of the header webhook-signature."""
    signed = f"{wire_id}.{timestamp}.".encode() + body
    return " ".join(["v1," + _digest(key.copy(), signed) for key in keys])


def _digest(key: hmac.HMAC, signed: bytes) -> str:
    key.update(signed)
    return b2a_base64(key.digest(), newline=False).decode()
