"""Why a message is not delivered, in four classes.

message   the broker will never take this message: a dead letter at once, and the circuit does not hear of it
endpoint  the broker takes nothing, or not now: tried again by the retry policy, and counted by the circuit
busy      the broker has no room for it now: tried again by the retry policy, and the circuit does not hear of it
unknown   it may have been written: tried again with the same id, and counted by the circuit
"""

from __future__ import annotations

from menzil.model.outcome import Fail


class MessageError(Exception):
    """This message cannot be written by this protocol; its text shows no value of it."""


class EndpointError(Exception):
    """Nothing was written: the broker cannot be reached, or refuses us."""


class UnknownError(Exception):
    """The connection ended before all acknowledgements came."""


def bad_message(reason: str) -> Fail:
    """Return the outcome of a message that the broker will never take."""
    return Fail(reason, retry=False, response={"class": "message"})


def bad_endpoint(reason: str) -> Fail:
    """Return the outcome of a message that was not written, and is not to blame."""
    return Fail(reason, response={"class": "endpoint"})


def busy(reason: str) -> Fail:
    """Return the outcome of a message that was not written, because its queue is full or the like."""
    return Fail(reason, response={"class": "busy"})


def unknown(reason: str) -> Fail:
    """Return the outcome of a message that may have been written."""
    return Fail(reason, response={"class": "unknown"})
