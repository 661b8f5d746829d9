"""A connection to Redis or Valkey. Replies come in the order of the commands, so a counter tells whose each one is."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from typing import Any

from menzil.deliver.broker.batch import COMPLETE, Batch
from menzil.deliver.broker.envelope import compose
from menzil.deliver.broker.errors import EndpointError, MessageError, bad_endpoint, bad_message, unknown
from menzil.deliver.broker.overrides import chosen
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CodecError, Session
from menzil.deliver.redis.entry import ONCE, Entries
from menzil.deliver.redis.resp import Replies, Reply, ReplyError, command
from menzil.model.message import Message
from menzil.model.outcome import Complete, Defer, Outcome
from menzil.telemetry.tracing import CARRIED

#: The id of an entry: nearly all that comes.
_ENTRY = re.compile(rb"\$([0-9]{1,3})\r\n([0-9]+-[0-9]+)\r\n")
#: The part of the time left that the server may wait for disk or replicas; the rest is for its answer.
_PART = 0.8


class RedisSession(Session):
    """One connection."""

    speaks = "the Redis protocol"

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        super().__init__(plan, host, peer, sock)
        config = plan.config
        self._entries = Entries(config)
        self._others = {name: Entries(config, name) for name in plan.overrides.get("stream", ())}
        self._streams: dict[int, str] = {}  # by position: streams of messages that chose another than the endpoint's
        self._durability = config.get("durability") or "reply"
        self._replicas = int(config.get("replicas") or 0)
        self._replies = Replies()
        self._script = b""
        self._greetings: list[Reply] = []
        self._wanted = 0  # replies that the greeting waits for
        self._places: list[int] = []  # of the messages that were written, in the order of their commands
        self._answers: list[Reply] = []
        self._confirms = False  # whether the last reply is about disk or replicas
        self._wait = b""

    async def greet(self) -> None:
        """Log in, choose the database, and find out whether the server can do what the endpoint wants."""
        auth: dict[str, Any] = self.plan.config.get("auth") or {}
        commands = []
        if "password" in auth:
            user = [auth["username"].encode()] if "username" in auth else []
            commands.append(command(b"AUTH", *user, auth["password"].encode()))
        if database := self.plan.config.get("db"):
            commands.append(command(b"SELECT", b"%d" % database))
        commands.append(command(b"PING"))
        if self._durability == "fsync":
            # An error here comes before anything is written. Behind a batch it would come too late.
            commands.append(command(b"WAITAOF", b"1", b"0", b"1"))
        if self._entries.dedup_seconds:
            commands.append(command(b"SCRIPT", b"LOAD", ONCE))
        self._wanted = len(commands)
        self.write(b"".join(commands))
        await self.hear()
        for reply in self._greetings:
            if isinstance(reply, ReplyError):
                raise EndpointError(f"{self.peer} refused the connection: {reply}")
        if self._entries.dedup_seconds:
            script = self._greetings[-1]
            if not isinstance(script, bytes) or len(script) != 40:
                raise EndpointError(f"{self.peer} did not take the script of dedup_seconds")
            self._script = script

    def began(self, left: float) -> None:
        """Begin a batch."""
        self._places, self._answers, self._streams = [], [], {}
        self._confirms = False
        patience = b"%d" % max(1, round(left * _PART * 1000))
        if self._durability == "fsync":
            self._wait = command(b"WAITAOF", b"1", b"%d" % self._replicas, patience)
        elif self._durability == "replicas":
            self._wait = command(b"WAIT", b"%d" % self._replicas, patience)

    def encode(self, messages: Sequence[Message], batch: Batch) -> Iterator[bytes]:
        """Yield a command for each message, and one that waits for disk or replicas."""
        plan, traces = self.plan, CARRIED.get() or {}
        script, usual, quick = self._script, self._entries.stream, plan.adds_nothing and not traces
        for place, message in enumerate(messages):
            try:
                if quick and (plain := message.plain) is not None:
                    piece = self._entries.of_plain(plain, script)
                    self._places.append(place)
                    yield piece
                    continue
                envelope = compose(message, plan.headers, plan.events, traces.get(message.id))
                entries, stream = self._entries, chosen(envelope, plan.overrides, "stream", usual)
                if stream != usual:
                    entries, self._streams[place] = self._others[stream], stream
                piece = entries.once(envelope, script) if script else entries.plain(envelope)
            except (MessageError, UnicodeEncodeError) as error:
                said = str(error) if isinstance(error, MessageError) else "The message has text that is no Unicode."
                batch.settle(place, bad_message(said))
                continue
            self._places.append(place)
            yield piece
        if self._wait and self._places:
            self._confirms = True
            yield self._wait

    def over(self) -> None:
        """Forget the batch. A reply that is still to come would answer the next one: the connection ends."""
        if self._confirms:
            self.abort()
        super().over()

    def feed(self, data: bytes) -> None:
        """Read replies."""
        if self.batch is not None and not self._script and not self._wait and self._replies.is_empty:
            data = self._written(data, self.batch)
            if not data:
                return
        for reply in self._replies.feed(data):
            if len(self._greetings) < self._wanted:
                self._greetings.append(reply)
                if len(self._greetings) == self._wanted:
                    self.heard()
            elif self.batch is None:
                raise CodecError("it came without a question")
            else:
                self._answered(self.batch, reply)

    def _written(self, data: bytes, batch: Batch) -> bytes:
        """Settle by the ids of entries that the data begins with, and return the rest."""
        places, answers, start = self._places, self._answers, 0
        while len(answers) < len(places) and (found := _ENTRY.match(data, start)) is not None:
            size, entry = found.groups()
            if len(entry) != int(size):
                break
            start = found.end()
            place = places[len(answers)]
            answers.append(entry)
            batch.settle(place, self._verdict(entry, place) if batch.details else COMPLETE)
        return data[start:] if start else data

    def _answered(self, batch: Batch, reply: Reply) -> None:
        number = len(self._answers)
        if number < len(self._places):
            self._answers.append(reply)
            if isinstance(reply, ReplyError) and "Protocol error" in str(reply):
                self._broke_off(batch, number, reply)
            elif isinstance(reply, ReplyError) or not self._wait:
                batch.settle(self._places[number], self._verdict(reply, self._places[number]))
        elif self._confirms:
            self._confirms = False
            self._confirmed(batch, reply)
        else:
            raise CodecError("there is one more than there were questions")

    def _broke_off(self, batch: Batch, number: int, error: ReplyError) -> None:
        """The server could not read this command, such as one with a text that is too long, and reads no further."""
        self.keepable = False
        batch.settle(self._places[number], bad_message(f"{self.peer} refused the message: {error}"))
        for place in self._places[number + 1 :]:
            batch.settle(place, Defer())  # nothing of it was written

    def _confirmed(self, batch: Batch, reply: Reply) -> None:
        """Settle what was written, now that it is known on how many disks and replicas it is."""
        short = "was not confirmed by enough disks or replicas in time"
        if isinstance(reply, ReplyError):
            short = f"was not confirmed: {reply}"
            kept = False
        elif self._durability == "fsync":
            kept = isinstance(reply, list) and len(reply) == 2 and _at_least(reply[0], 1)
            kept = kept and isinstance(reply, list) and _at_least(reply[1], self._replicas)
        else:
            kept = _at_least(reply, self._replicas)
        for place, answer in zip(self._places, self._answers, strict=True):
            written = self._verdict(answer, place)
            if isinstance(written, Complete) and not kept:
                batch.settle(place, unknown(f"The message was written to {self.peer}, but {short}"))
            else:
                batch.settle(place, written)

    def _verdict(self, reply: Reply, place: int) -> Outcome:
        if isinstance(reply, ReplyError):
            said = f"{self.peer} refused the message: {reply}"
            if _is_too_large(reply):
                return bad_message(said)
            # The next connection loads a script again, and finds the primary that a name leads to after a failover.
            self.keepable = False
            return bad_endpoint(said)
        duplicate, stream = False, self._streams.get(place, self._entries.stream)
        if self._script:
            if not isinstance(reply, list) or len(reply) != 2 or reply[1] not in (0, 1):
                raise CodecError("the script returned something else")
            duplicate, reply = reply[1] == 1, reply[0]
        if reply is None:
            return bad_endpoint(f"There is no stream {stream!r}, and create_stream is off")
        if not isinstance(reply, bytes) or b"-" not in reply:
            raise CodecError("an entry has no id")
        entry = reply.decode("ascii", "replace")
        return Complete({"stream": stream, "entry": entry, "duplicate": duplicate})


def _at_least(reply: Reply, count: int) -> bool:
    return isinstance(reply, int) and reply >= count


def _is_too_large(error: ReplyError) -> bool:
    return any(words in str(error) for words in ("too big", "too large", "maximum allowed size"))
