"""How the guard says no: for ever, or for now. Neither repeats a URL, whose path may hold a token."""

from __future__ import annotations


class RefusedUrlError(Exception):
    """The URL, or an address of its host, is not allowed: trying again will not help."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ResolveError(Exception):
    """The host has no address just now: no answer, no such name, or too many questions at once."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
