"""Signed texts: the cookie of a session, the token of a form, and the plan that a person confirms."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
from typing import Any

VARIABLE = "MENZIL_CONSOLE_SECRET"


class Signer:
    """One key per process, unless the environment names one that several processes share."""

    def __init__(self, secret: str | None = None) -> None:
        given = os.environ.get(VARIABLE, "") if secret is None else secret
        self._key = hashlib.sha256(f"menzil console {given}".encode()).digest() if given else secrets.token_bytes(32)

    def __repr__(self) -> str:
        return "Signer(…)"

    def mac(self, purpose: str, *words: str) -> str:
        """The signature of some words for one purpose; no word can be moved into its neighbour."""
        text = json.dumps([purpose, *words]).encode()
        return _encoded(hmac.new(self._key, text, hashlib.sha256).digest())

    def seal(self, purpose: str, value: Any) -> str:
        """A JSON value as a text that open() accepts and only this console can write."""
        body = _encoded(json.dumps(value, separators=(",", ":")).encode())
        return f"{body}.{self.mac(purpose, body)}"

    def open(self, purpose: str, text: str) -> Any | None:
        """The value of a sealed text, or None when we did not seal it for this purpose."""
        body, _, signature = text.partition(".")
        if not hmac.compare_digest(signature.encode(), self.mac(purpose, body).encode()):
            return None
        try:
            return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        except (binascii.Error, ValueError):
            return None


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
