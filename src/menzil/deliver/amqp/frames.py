"""Frames of AMQP 0-9-1: read from bytes that come in pieces, and written. Methods are spelled by pamqp.

Confirms are read here without pamqp, because there is one for every few messages; other frames are rare.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pamqp import base, commands, frame, header, heartbeat

from menzil.deliver.broker.session import CodecError

#: The first bytes of a connection.
OPENING = b"AMQP\x00\x00\x09\x01"
#: The largest frame that we take, and the largest that we write unless the server wants smaller ones.
LARGEST = 131072
#: The smallest frame_max that a server may ask for.
SMALLEST = 4096
#: Bytes around the content of a frame.
AROUND = 8
#: The only channel. Channel 0 is the connection itself.
CHANNEL = 1
METHOD, HEADER, BODY = 1, 2, 3
HEARTBEAT = heartbeat.Heartbeat().marshal()
CLOSE = frame.marshal(commands.Connection.Close(200, "done", 0, 0), 0)
CLOSE_OK = frame.marshal(commands.Connection.CloseOk(), 0)

_HEAD = struct.Struct(">BHI")
_CONFIRM = struct.Struct(">IQB")  # method, delivery tag, bits
_ACK, _NACK = commands.Basic.Ack.index, commands.Basic.Nack.index
_SIZE = struct.Struct(">HHQ")  # class, weight, size of the body
_END = 0xCE


class Confirm(NamedTuple):
    """The server has taken messages, or has refused them."""

    tag: int  # 0 with multiple: all that are not confirmed yet
    multiple: bool  # all up to this tag
    is_ack: bool


class Piece(NamedTuple):
    """A part of the body of a message that came."""

    content: bytes


class Unread(NamedTuple):
    """The header of a message whose properties cannot be read, such as an id that is no UTF-8."""

    body_size: int


Frame = Confirm | Piece | Unread | base.Frame | header.ContentHeader | heartbeat.Heartbeat


class Frames:
    """Reads frames."""

    def __init__(self) -> None:
        self._data = b""

    def feed(self, data: bytes) -> Iterator[tuple[int, Frame]]:
        """Yield channels and frames that are complete. Those before a broken one count."""
        data = self._data + data if self._data else data
        start = 0
        try:
            while len(data) - start >= _HEAD.size:
                kind, channel, size = _HEAD.unpack_from(data, start)
                if size > LARGEST:
                    raise CodecError("it is no frame of AMQP 0-9-1, or a frame that is too long")
                end = start + 7 + size
                if len(data) <= end:
                    if kind not in (METHOD, HEADER, BODY, 8):
                        raise CodecError("it is no frame of AMQP 0-9-1")
                    return
                if data[end] != _END:
                    raise CodecError("a frame does not end where it should")
                begin, start = start, end + 1
                yield channel, _read(kind, data, begin, end)
        finally:
            self._data = data[start:]


def _read(kind: int, data: bytes, begin: int, end: int) -> Frame:
    if kind == METHOD and end - begin == 7 + _CONFIRM.size:
        method, tag, bits = _CONFIRM.unpack_from(data, begin + 7)
        if method in (_ACK, _NACK):
            return Confirm(tag, bool(bits & 1), method == _ACK)
    if kind == BODY:
        return Piece(data[begin + 7 : end])
    try:
        found = frame.unmarshal(data[begin : end + 1])[2]
    except Exception:  # pamqp raises errors of its own, and those of struct and of texts
        if kind == HEADER and end - begin >= 7 + _SIZE.size:
            return Unread(_SIZE.unpack_from(data, begin + 7)[2])
        raise CodecError("a frame cannot be read") from None
    if not isinstance(found, base.Frame | header.ContentHeader | heartbeat.Heartbeat):
        raise CodecError("a frame has no place here")
    return found


def method(value: base.Frame, channel: int = CHANNEL) -> bytes:
    """Return one method."""
    return frame.marshal(value, channel)


def framed(kind: int, content: bytes) -> bytes:
    """Return one frame of the channel."""
    return b"%b%b\xce" % (_HEAD.pack(kind, CHANNEL, len(content)), content)
