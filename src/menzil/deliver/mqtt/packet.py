"""The bytes of MQTT 5 and 3.1.1: numbers, texts, the packets that are written, and the packets that are read."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from menzil.deliver.broker.errors import MessageError
from menzil.deliver.broker.session import CodecError

#: Bytes of a packet that comes in. Acknowledgements have a few; MQTT 5 is told this limit.
LONGEST = 65536
#: Bytes after the header of a packet, by MQTT itself.
LARGEST = 268_435_455
PINGREQ, DISCONNECT = b"\xc0\x00", b"\xe0\x00"
CONNACK, PUBACK, PUBREC, PUBCOMP, PINGRESP, GOODBYE = 2, 4, 5, 7, 13, 14
EXPECTED = frozenset(kind << 4 for kind in (CONNACK, PUBACK, PUBREC, PUBCOMP, PINGRESP, GOODBYE))

# Brokers close the connection on these.
_BAD = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
_SHORT = struct.Struct(">H")


def number(value: int) -> bytes:
    """Write a length: seven bits a byte."""
    if value < 128:
        return bytes((value,))
    found = bytearray()
    while True:
        value, low = value >> 7, value & 127
        found.append(low | 128 if value else low)
        if not value:
            return bytes(found)


def data(value: bytes) -> bytes:
    """Write bytes with their length."""
    return _SHORT.pack(len(value)) + value


def text(value: str, what: str) -> bytes:
    """Write a text with its length, or raise MessageError. `what` names it for people."""
    written = value.encode()
    if len(written) > 65535:
        raise MessageError(f"{what} has {len(written)} bytes, MQTT takes 65535.")
    if _BAD.search(value):
        raise MessageError(f"{what} has control characters, and brokers refuse these.")
    return _SHORT.pack(len(written)) + written


def packet(head: int, *parts: bytes) -> bytes:
    """Join a packet."""
    return b"".join((bytes((head,)), number(sum(map(len, parts))), *parts))


def connect(
    *, five: bool, client_id: str, keepalive: int, username: str | None, password: str | None, kept: bytes | None = None
) -> bytes:
    """Write the first packet. The session begins anew and ends with the connection.

    With `kept`, the properties of MQTT 5 for that, the session goes on and outlives the connection.
    """
    flags = (
        (0 if kept is not None else 0x02)
        | (0x80 if username is not None else 0)
        | (0x40 if password is not None else 0)
    )
    properties = b"\x27" + struct.pack(">I", LONGEST) if kept is None else kept
    parts = [data(b"MQTT"), bytes((5 if five else 4, flags)), _SHORT.pack(keepalive)]
    if five:
        parts.append(number(len(properties)) + properties)
    parts.append(data(client_id.encode()))
    parts += [data(given.encode()) for given in (username, password) if given is not None]
    return packet(0x10, *parts)


class Reader:
    """Reads packets from bytes that come in pieces."""

    def __init__(self, expected: frozenset[int] = EXPECTED, longest: int = LONGEST) -> None:
        self._data = b""
        self._expected, self._longest = expected, longest

    def feed(self, came: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the first byte and the rest of each packet that is complete."""
        held = self._data + came if self._data else came
        start, end = 0, len(held)
        try:
            while end - start >= 2:
                if held[start] not in self._expected:  # checked first: the bytes after it are no length
                    raise CodecError("a packet has a type that is not expected")
                size, at = held[start + 1], start + 2
                if size & 128:
                    found = self._size(held, start + 1)
                    if found is None:
                        return
                    size, at = found
                if at + size > end:
                    return
                head, body = held[start], held[at : at + size]
                start = at + size
                yield head, body
        finally:
            self._data = held[start:]

    def _size(self, held: bytes, at: int) -> tuple[int, int] | None:
        size = 0
        for place in range(4):
            if at + place >= len(held):
                return None
            size |= (held[at + place] & 127) << 7 * place
            if not held[at + place] & 128:
                if size > self._longest:
                    raise CodecError("a packet is too long")
                return size, at + place + 1
        raise CodecError("the length of a packet has no end")


#: Bytes of each property that is not a text; a text has its length in front, a pair is two texts.
_SIZES = {
    0x01: 1, 0x02: 4, 0x11: 4, 0x13: 2, 0x17: 1, 0x19: 1, 0x21: 2, 0x22: 2, 0x23: 2, 0x24: 1, 0x25: 1, 0x27: 4,
    0x28: 1, 0x29: 1, 0x2A: 1,
}  # fmt: skip
_TEXTS = frozenset({0x03, 0x08, 0x12, 0x15, 0x16, 0x1A, 0x1C, 0x1F})
KEEPALIVE, RECEIVE_MAXIMUM, MAXIMUM_QOS, RETAIN_AVAILABLE, MAXIMUM_SIZE, REASON = 0x13, 0x21, 0x24, 0x25, 0x27, 0x1F


CONTENT_TYPE, CORRELATION = 0x03, 0x09
Pairs = list[tuple[str, str]]


def properties(body: bytes, at: int) -> dict[int, int | str]:
    """Read the properties of a packet that begin here; pairs are left out. Raises CodecError."""
    return told(body, at)[0] if at < len(body) else {}


def told(body: bytes, at: int) -> tuple[dict[int, int | str], Pairs, int]:
    """Read the properties that begin here, and the pairs among them, and say where they end. Raises CodecError."""
    found: dict[int, int | str] = {}
    pairs: Pairs = []
    try:
        size = shift = 0
        while True:
            low = body[at]
            at += 1
            size |= (low & 127) << shift
            shift += 7
            if low < 128:
                break
        end = at + size
        if end > len(body):
            raise CodecError("properties are longer than their packet")
        while at < end:
            name = body[at]
            at += 1
            if name in _SIZES:
                found[name] = int.from_bytes(body[at : at + _SIZES[name]], "big")
                at += _SIZES[name]
            elif name == CORRELATION:
                found[name], at = _data(body, at)
            elif name in _TEXTS:
                found[name], at = _text(body, at)
            elif name == 0x26:
                first, at = _text(body, at)
                second, at = _text(body, at)
                pairs.append((first, second))
            elif name == 0x0B:  # which subscription a message belongs to
                while body[at] & 128:
                    at += 1
                at += 1
            else:
                raise CodecError("a packet has a property that MQTT does not know")
        if at != end:
            raise CodecError("a property is longer than its packet")
    except (IndexError, struct.error):
        raise CodecError("the properties of a packet are cut off") from None
    return found, pairs, end


def _text(body: bytes, at: int) -> tuple[str, int]:
    (long,) = _SHORT.unpack_from(body, at)
    return body[at + 2 : at + 2 + long].decode("utf-8", "replace"), at + 2 + long


def _data(body: bytes, at: int) -> tuple[str, int]:
    """Read bytes that are a text as a rule; others are written as digits."""
    (long,) = _SHORT.unpack_from(body, at)
    found = body[at + 2 : at + 2 + long]
    try:
        return found.decode(), at + 2 + long
    except UnicodeDecodeError:
        return f"0x{found.hex()}", at + 2 + long
