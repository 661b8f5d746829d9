"""A message in the hands of a consumer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar
from uuid import UUID

from menzil.model.wire import Loads, json_dumps, json_loads, read_json, read_time, read_uuid, write_time

T = TypeVar("T")
P = TypeVar("P")
# A row of message_dequeue: columns that psycopg reads at no cost are read, the others stay as they came over the wire.
Raw = bytes | None
Row = tuple[
    int, str, bytes | None, Raw, bytes | None, int, Raw, Raw, Raw, str | None, int, int, Raw, Raw, Raw, Raw, int | None
]  # fmt: skip


#: Of a plain message: id, channel, body, whether that is JSON, attempt, ordering key, microseconds since 2000.
Plain = tuple[int, str, bytes, bool, int, str | None, int]
#: Of a lease: id, attempt, batch, channel, bytes of the body.
Taken = tuple[int, int, int | None, str, int]


class Message:
    """One message as message_dequeue handed it out. Read only; `id` and `attempt` together are its lease.

    It keeps the row as it came over the wire and decodes payload, times and the like when they are first looked at:
    a handler reads two or three of them, and one that cannot be decoded does not affect the others.
    """

    __slots__ = ("_loads", "_row", "_seen", "database")

    database: str | None  # the name of the database that a worker leased it from; None elsewhere
    _row: Row
    _loads: Loads
    _seen: dict[int, Any]  # by position in the row: what was decoded already

    def __init__(
        self,
        id: int,
        channel: str,
        payload: Any = None,
        *,
        content: bytes | None = None,
        state: bytes | None = None,
        attempt: int = 1,
        headers: dict[str, str] | None = None,
        correlation_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        ordering_key: str | None = None,
        priority: int = 0,
        retry_count: int = 0,
        created_at: datetime | None = None,
        scheduled_at: datetime | None = None,
        expires_at: datetime | None = None,
        unlock_at: datetime | None = None,
        database: str | None = None,
    ) -> None:
        """Make a message by hand, as the test of a handler does."""
        self.database = database
        self._loads = json_loads
        absent = (None, None, None)
        told = (ordering_key, priority, retry_count)
        self._row = (id, channel, content, None, state, attempt, *absent, *told, None, *absent, None)
        created_at = created_at or datetime.now(UTC)
        decoded = {3: payload, 6: headers, 7: correlation_id, 8: metadata}
        self._seen = decoded | {12: created_at, 13: scheduled_at, 14: expires_at, 15: unlock_at}

    @classmethod
    def from_row(cls, row: Row, loads: Loads, database: str | None = None) -> Message:
        """Wrap a row of message_dequeue or message_peek, jsonb, uuid and timestamptz still undecoded."""
        self = cls.__new__(cls)
        self._row = row
        self._loads = loads
        self._seen = {}
        self.database = database
        return self

    def _decode(self, place: int, raw: Raw, read: Callable[[bytes], T]) -> T | None:
        seen = self._seen
        if place not in seen:
            seen[place] = None if raw is None else read(raw)
        return seen[place]  # type: ignore[no-any-return]  # a dict of everything

    def _json(self, raw: bytes) -> Any:
        return read_json(raw, self._loads)

    @property
    def id(self) -> int:
        return self._row[0]

    @property
    def channel(self) -> str:
        return self._row[1]

    @property
    def content(self) -> bytes | None:
        """The body of a message sent as bytes; None for a JSON one."""
        return self._row[2]

    @property
    def payload(self) -> Any:
        """The JSON body; None for a message sent as bytes."""
        return self._decode(3, self._row[3], self._json)

    @property
    def payload_json(self) -> bytes:
        """The JSON body as text in UTF-8, as the database gave it; `null` for a message sent as bytes."""
        raw = self._row[3]
        if raw is not None:
            return raw[1:]  # the first byte is the version of the format
        text = json_dumps(self._seen.get(3))
        return text.encode() if isinstance(text, str) else text

    @property
    def wire_id(self) -> str:
        """The name under which receivers know it: the same at every try.

        Its time is part of it, because ids begin again in a new database, and receivers remember the old one's.
        """
        return f"msg_{self._row[0]}_{self.created_us:x}"

    @property
    def created_us(self) -> int:
        """When it was sent, in microseconds since 2000: `created_at` without a datetime."""
        raw = self._row[12]
        return int.from_bytes(raw, "big", signed=True) if raw else write_time(self.created_at)

    @property
    def body(self) -> Any:
        """What was sent: `content` if it was bytes, `payload` otherwise."""
        return self.payload if self._row[2] is None else self._row[2]

    @property
    def size(self) -> int:
        """Bytes of the body as it came over the wire."""
        row = self._row
        return len(row[2] or b"") + len(row[3] or b"")

    @property
    def taken(self) -> Taken:
        """What its lease is known by, read at once: a property for each costs a worker more than a quick handler."""
        row = self._row
        content, payload = row[2], row[3]
        size = (0 if content is None else len(content)) + (0 if payload is None else len(payload))
        return row[0], row[5], row[16], row[1], size

    @property
    def state(self) -> bytes | None:
        """What the last defer left behind."""
        return self._row[4]

    @property
    def attempt(self) -> int:
        """How often the message was handed out, this time included: the fencing token."""
        return self._row[5]

    @property
    def headers(self) -> dict[str, str] | None:
        raw = self._row[6]
        return self._seen.get(6) if raw is None else self._decode(6, raw, self._json)

    @property
    def correlation_id(self) -> UUID | None:
        raw = self._row[7]
        return self._seen.get(7) if raw is None else self._decode(7, raw, read_uuid)

    @property
    def metadata(self) -> dict[str, Any] | None:
        raw = self._row[8]
        return self._seen.get(8) if raw is None else self._decode(8, raw, self._json)

    @property
    def is_plain(self) -> bool:
        """Whether it came from the database without headers, correlation id and metadata, as most do."""
        row = self._row
        return row[6] is None and row[7] is None and row[8] is None and not self._seen

    @property
    def plain(self) -> Plain | None:
        """What a delivery takes of a plain message, read at once: a property for each costs more than the delivery."""
        row = self._row
        content, payload, sent = row[2], row[3], row[12]
        if row[6] is not None or row[7] is not None or row[8] is not None or self._seen or sent is None:
            return None
        if content is not None:
            return row[0], row[1], content, False, row[5], row[9], int.from_bytes(sent, "big", signed=True)
        if payload is None:
            return None
        return row[0], row[1], payload[1:], True, row[5], row[9], int.from_bytes(sent, "big", signed=True)

    @property
    def ordering_key(self) -> str | None:
        return self._row[9]

    @property
    def priority(self) -> int:
        return self._row[10]

    @property
    def retry_count(self) -> int:
        """Failures counted against the retry budget; a defer counts none."""
        return self._row[11]

    @property
    def created_at(self) -> datetime:
        created_at = self._decode(12, self._row[12], read_time)
        assert created_at is not None  # never NULL in the database
        return created_at

    @property
    def scheduled_at(self) -> datetime | None:
        return self._decode(13, self._row[13], read_time)

    @property
    def expires_at(self) -> datetime | None:
        return self._decode(14, self._row[14], read_time)

    @property
    def unlock_at(self) -> datetime | None:
        """When the lease ends unless a heartbeat moves it; None for a message that was only peeked at."""
        return self._decode(15, self._row[15], read_time)

    @property
    def batch(self) -> int | None:
        """A hint that lets settles find the lease faster; None for a message that was peeked at or made by hand."""
        return self._row[16]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        ours, theirs = (self.id, self.attempt, self.channel), (other.id, other.attempt, other.channel)
        return ours == theirs and self.database == other.database

    def __hash__(self) -> int:
        return hash((self.id, self.attempt, self.channel))

    def __repr__(self) -> str:
        return f"<Message {self.id} of {self.channel!r}, attempt {self.attempt}>"


class MessageOf(Message, Generic[P]):
    """A message whose payload was decoded, for a handler with payload=…."""

    __slots__ = ()

    @classmethod
    def of(cls, message: Message, payload: P) -> MessageOf[P]:
        """The same message with another payload."""
        self = cls.__new__(cls)
        self._row = message._row
        self._loads = message._loads
        self._seen = {**message._seen, 3: payload}
        self.database = message.database
        return self

    @property
    def payload(self) -> P:
        """The payload as what the handler asked for."""
        payload: P = self._seen[3]
        return payload
