"""What the codes of MQTT say, and what they mean for a message."""

from __future__ import annotations

#: What a server of MQTT 5 says in CONNACK, PUBACK, PUBREC, PUBCOMP and DISCONNECT.
REASONS = {
    0x00: "success",
    0x10: "no matching subscribers",
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x83: "implementation specific error",
    0x84: "unsupported protocol version",
    0x85: "client identifier not valid",
    0x86: "bad user name or password",
    0x87: "not authorized",
    0x88: "server unavailable",
    0x89: "server busy",
    0x8A: "banned",
    0x8B: "server shutting down",
    0x8C: "bad authentication method",
    0x8D: "keep alive timeout",
    0x8E: "session taken over",
    0x90: "topic name invalid",
    0x91: "packet identifier in use",
    0x92: "packet identifier not found",
    0x93: "receive maximum exceeded",
    0x94: "topic alias invalid",
    0x95: "packet too large",
    0x96: "message rate too high",
    0x97: "quota exceeded",
    0x98: "administrative action",
    0x99: "payload format invalid",
    0x9A: "retain not supported",
    0x9B: "QoS not supported",
    0x9C: "use another server",
    0x9D: "server moved",
    0x9F: "connection rate exceeded",
    0xA0: "maximum connect time",
}
#: What a server of MQTT 3.1.1 says in CONNACK.
REFUSALS = {
    1: "unacceptable protocol version",
    2: "identifier rejected",
    3: "server unavailable",
    4: "bad user name or password",
    5: "not authorized",
}
NO_SUBSCRIBERS, TAKEN_OVER, IN_USE, NOT_FOUND = 0x10, 0x8E, 0x91, 0x92

#: These blame the message: it will never be taken.
MESSAGE = frozenset({0x90, 0x95, 0x99})
#: Of an acknowledgement: the server may have the message nevertheless.
UNSURE = frozenset({IN_USE, NOT_FOUND})
#: A server that closes the connection with one of these could not read a packet, or would not.
BLAMES_A_PACKET = frozenset({0x81, 0x82, *MESSAGE})


def named(code: int, said: object = None) -> str:
    """Put a code of MQTT 5 into words, with what the server said about it."""
    words = f"{REASONS.get(code, 'unknown reason')} (0x{code:02X})"
    return f"{words}: {said}" if said else words
