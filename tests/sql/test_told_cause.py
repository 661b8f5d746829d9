"""menzil._told_cause: what a viewer without payloads learns of an error; of transport errors, menzil's own words."""

from __future__ import annotations

import errno
import ssl

import pytest

from menzil.deliver.wire.errors import broken, late
from tests.sql.queue import Queue

PEER = "hooks.secret.example:443"


def certificate() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "failed")
    error.verify_message = "certificate has expired."
    return error


def handshake() -> ssl.SSLError:
    error = ssl.SSLError(1, "failed")
    error.reason = "WRONG_VERSION_NUMBER"
    return error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (broken(ConnectionRefusedError(), PEER, "connecting"), "Connection refused"),
        (broken(ConnectionResetError(), PEER, "reading"), "Connection reset"),
        (broken(None, PEER, "reading"), "Connection closed"),
        (broken(OSError(errno.EHOSTUNREACH, "no route"), PEER, "connecting"), "Connection failed"),
        (broken(RuntimeError("x"), PEER, "connecting"), "Connection failed"),
        (broken(handshake(), PEER, "connecting"), "TLS failed"),
        (broken(certificate(), PEER, "connecting"), "The TLS certificate was not accepted"),
        (str(late(2.5, "connecting to " + PEER)), "No complete answer within 2.5 s"),
        ("HTTP 503 from " + PEER, "HTTP 503"),
        ("app.Oops: card 4111", "app.Oops"),
        ("card 4111 refused by " + PEER, None),
        ("Connection refused", None),
    ],
)
@pytest.mark.parametrize("mark", ["", "[RETRYABLE] ", "[PERMANENT] "])
def test_told_is_what_menzil_itself_says(queue: Queue, mark: str, error: str, told: str | None) -> None:
    assert queue.all("select menzil._told_cause(%s)", mark + error) == [(told,)]
