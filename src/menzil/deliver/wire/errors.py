"""Why there was no answer. The text is one sentence for people: it names the other side, and never what was sent."""

from __future__ import annotations

import os
import ssl

from menzil.deliver.wire.answer import Answer


class WireError(Exception):
    """No complete answer. `answer` is the part of it that came, if any did."""

    def __init__(self, sentence: str, answer: Answer | None = None) -> None:
        super().__init__(sentence)
        self.answer = answer


class StaleError(WireError):
    """A kept connection had been closed by the other side before the request reached it: not one byte came back."""


class DeadlineError(WireError):
    """Time is up."""


def late(seconds: float, doing: str, answer: Answer | None = None) -> DeadlineError:
    """Say that an answer did not come in time, and what was being waited for."""
    return DeadlineError(f"No complete answer within {seconds:g} s ({doing})", answer)


def broken(error: BaseException | None, peer: str, doing: str) -> str:
    """Put into words why a connection failed."""
    match error:
        case None:
            return f"Connection closed by {peer} ({doing})"
        case ConnectionRefusedError():
            return f"Connection refused by {peer}"
        case ConnectionResetError() | BrokenPipeError() | ConnectionAbortedError():
            return f"Connection reset by {peer} ({doing})"
        case ssl.SSLCertVerificationError():
            return f"The TLS certificate of {peer} was not accepted: {error.verify_message.rstrip('.')}"
        case ssl.SSLError():
            return f"TLS failed with {peer}: {(error.reason or 'unknown error').replace('_', ' ').lower()} ({doing})"
        case OSError(errno=int(number)):
            return f"Connection to {peer} failed: {os.strerror(number)} ({doing})"
        case _:
            return f"Connection to {peer} failed: {type(error).__name__} ({doing})"
