"""What came back."""

from __future__ import annotations


class Answer:
    """An HTTP response: its status, its headers as they were spelled, and the first part of its body as it came."""

    __slots__ = ("body", "headers", "status", "whole")

    def __init__(self, status: int, headers: dict[bytes, bytes], body: bytes, whole: bool = True) -> None:
        self.status = status
        self.headers = headers
        self.body = body
        self.whole = whole  # False: it went on, or broke off

    def header(self, name: bytes) -> str | None:
        """Return the value of a header, its name in lower case. Searched for, since most answers are never asked."""
        for key, value in self.headers.items():
            if key.lower() == name:
                return value.decode("latin-1").strip()
        return None
