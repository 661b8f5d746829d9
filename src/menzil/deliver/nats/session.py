"""A connection to NATS. Each message asks for an acknowledgement on a subject that names its batch and its position."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import socket
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from menzil.deliver.broker.batch import COMPLETE, Batch
from menzil.deliver.broker.envelope import compose
from menzil.deliver.broker.errors import EndpointError, MessageError, UnknownError, bad_endpoint, bad_message
from menzil.deliver.broker.overrides import chosen
from menzil.deliver.broker.plan import Plan
from menzil.deliver.broker.session import CodecError, Session
from menzil.deliver.http.errors import RefusedError
from menzil.deliver.nats.nkey import Nkey, read_credentials
from menzil.deliver.nats.publication import head, plain_head
from menzil.deliver.nats.reader import Arrival, Line, Reader
from menzil.model.message import Message
from menzil.model.outcome import Complete, Outcome
from menzil.telemetry.tracing import CARRIED

#: Codes of JetStream that blame the message: its body or its headers are too large for the stream.
_MESSAGE_CODES = frozenset({10054, 10097})
#: What the server says when it throws one message away; the connection stays.
_FORBIDDEN = re.compile(r'Permissions Violation for Publish to "(.+)"')


#: Most of what comes: that a stream has stored a message. Everything else is read by the reader.
_ACKNOWLEDGEMENT = (
    rb"MSG %b\.([0-9]{1,9})-([0-9]{1,9}) 1 ([0-9]{1,4})\r\n"
    rb'(\{"stream":"([A-Za-z0-9_-]+)", ?"seq": ?([1-9][0-9]{0,18})(, ?"duplicate": ?true)?\})\r\n'
)


class NatsSession(Session):
    """One connection."""

    speaks = "NATS"

    def __init__(self, plan: Plan, host: str, peer: str, sock: socket.socket) -> None:
        super().__init__(plan, host, peer, sock)
        config = plan.config
        self._subject: str = config["subject"]
        self._stream: str | None = config.get("stream")
        self._dedup = config.get("dedup") is not False
        self._ttl = config.get("message_ttl") is True
        self._reader = Reader()
        self._info: dict[str, Any] = {}
        self._has_logged_in = False
        self._inbox = f"_INBOX.{secrets.token_hex(8)}"
        self._acknowledgement = re.compile(_ACKNOWLEDGEMENT % self._inbox.encode())
        self._number = 0  # of the batch on this connection
        self._subjects: dict[int, str] = {}  # by position: subjects of messages that chose another than the endpoint's
        self._reached = 0  # positions before this one are encoded

    async def greet(self) -> None:
        """Wait for INFO, shake hands if TLS is wanted, and log in."""
        await self.hear()
        tls = self.plan.tls
        if tls is None and self._info.get("tls_required"):
            raise EndpointError(f"{self.peer} wants TLS, and the endpoint has no tls")
        if tls is not None:
            if not (self._info.get("tls_required") or self._info.get("tls_available")):
                raise EndpointError(f"{self.peer} has no TLS, and the endpoint wants it")
            assert self.transport is not None
            loop = asyncio.get_running_loop()
            wrapped = await loop.start_tls(self.transport, self, tls, server_hostname=self.host)
            if wrapped is None:
                raise ConnectionResetError
            self.connection_made(wrapped)
        if not self._info.get("headers"):
            raise EndpointError(f"{self.peer} knows no headers: it is older than NATS 2.2")
        try:
            login = self._login()
        except RefusedError as error:
            raise EndpointError(str(error)) from None
        options = {
            "verbose": False, "pedantic": False, "echo": False, "protocol": 1, "headers": True, "no_responders": True,
            "tls_required": tls is not None, "lang": "python-menzil", "version": version("menzil"),
            "name": f"menzil {self.plan.worker}", **login,
        }  # fmt: skip
        self.write(f"CONNECT {json.dumps(options)}\r\nSUB {self._inbox}.* 1\r\nPING\r\n".encode())
        await self.hear()
        self._has_logged_in = True

    def _login(self) -> dict[str, str]:
        auth = self.plan.config.get("auth") or {}
        nonce = self._info.get("nonce") or ""
        match auth.get("type"):
            case "token":
                return {"auth_token": auth["token"]}
            case "password":
                return {"user": auth["username"], "pass": auth["password"]}
            case "nkey":
                key = Nkey(auth["nkey_seed"])
                return {"nkey": key.public, "sig": key.sign(nonce)}
            case "credentials":
                token, key = read_credentials(auth["credentials"])
                return {"jwt": token, "sig": key.sign(nonce)}
            case _:
                return {}

    def began(self, left: float) -> None:  # noqa: ARG002 # the server has no part in the deadline
        """Begin a batch."""
        self._number += 1
        self._subjects, self._reached = {}, 0

    def encode(self, messages: Sequence[Message], batch: Batch) -> Iterator[bytes]:
        """Yield one HPUB for each message."""
        plan, traces, most = self.plan, CARRIED.get() or {}, int(self._info.get("max_payload") or 1048576)
        inbox = f"{self._inbox}.{self._number}-"
        usual, quick = f"HPUB {self._subject} {inbox}".encode(), plan.adds_nothing and not traces and not self._ttl
        for place, message in enumerate(messages):
            try:
                if quick and (plain := message.plain) is not None:
                    heading, body = plain_head(plain, dedup=self._dedup, stream=self._stream), plain[2]
                    size = len(heading) + len(body)
                    if size <= most:
                        self._reached = place + 1
                        yield b"%b%d %d %d\r\n%b%b\r\n" % (usual, place, len(heading), size, heading, body)
                        continue
                envelope = compose(message, plan.headers, plan.events, traces.get(message.id))
                subject = chosen(envelope, plan.overrides, "subject", self._subject)
                heading = head(envelope, dedup=self._dedup, stream=self._stream, ttl=self._ttl)
                size = len(heading) + len(envelope.body)
                if size > most:
                    raise MessageError(f"The message has {size} bytes with its headers, {self.peer} takes {most}.")
            except (MessageError, UnicodeEncodeError) as error:
                said = str(error) if isinstance(error, MessageError) else "The message has text that is no Unicode."
                batch.settle(place, bad_message(said))
                continue
            if subject != self._subject:
                self._subjects[place] = subject
            self._reached = place + 1
            opening = f"HPUB {subject} {inbox}{place} {len(heading)} {size}\r\n"
            yield b"%b%b%b\r\n" % (opening.encode(), heading, envelope.body)

    def feed(self, data: bytes) -> None:
        """Read lines and acknowledgements."""
        if self.batch is not None and self._reader.is_empty:
            data = self._stored(data, self.batch)
            if not data:
                return
        for thing in self._reader.feed(data):
            if isinstance(thing, Arrival):
                self._arrived(thing)
            else:
                self._said(thing)

    def _stored(self, data: bytes, batch: Batch) -> bytes:
        """Settle by the acknowledgements that the data begins with, and return the rest."""
        match, number, start = self._acknowledgement.match, b"%d" % self._number, 0
        while (found := match(data, start)) is not None:
            its_number, place, size, body, stream, sequence, duplicate = found.groups()
            if len(body) != int(size):
                break
            start = found.end()
            if its_number == number:  # and not of a batch that is over
                outcome = COMPLETE
                if batch.details:
                    said = {"stream": stream.decode(), "sequence": int(sequence), "duplicate": duplicate is not None}
                    outcome = Complete(said)
                batch.settle(int(place), outcome)
        return data[start:] if start else data

    def _said(self, line: Line) -> None:
        if line.word == b"INFO":
            is_first, self._info = not self._info, _object(line.rest)
            if self._info.get("ldm"):
                self.keepable = False  # the server is about to stop
            if is_first:  # another one follows the login, before the answer to it
                self.heard()
        elif line.word == b"PING":
            self.write(b"PONG\r\n")
        elif line.word == b"PONG":
            if not self._has_logged_in:
                self.heard()
        elif line.word == b"-ERR":
            said = line.rest.decode("utf-8", "replace").strip("' ")
            error = f"{self.peer} said: {said}"
            forbidden = _FORBIDDEN.fullmatch(said)
            if forbidden is not None and self._may_not(forbidden[1], error):
                return
            # A permission that is missing comes as an error of the connection, and nothing was written.
            nothing = not self._has_logged_in or "Permissions Violation" in said
            self.fail(EndpointError(error) if nothing else UnknownError(error))
        elif line.word != b"+OK":
            raise CodecError("a line begins with no known word")

    def _may_not(self, subject: str, error: str) -> bool:
        """Settle the messages to a subject that we may not write to; the server goes on with the others.

        False if none was written to it: the server knows the subject under another name.
        """
        batch = self.batch
        if batch is None:
            return False
        self.keepable = False  # the server says it once for each message, and never for which one
        if batch.is_over:
            return True
        found = [place for place in range(self._reached) if self._subjects.get(place, self._subject) == subject]
        for place in found:
            batch.settle(place, bad_endpoint(error))
        return bool(found)

    def _arrived(self, arrival: Arrival) -> None:
        number, _, place = arrival.subject.rpartition(b".")[2].partition(b"-")
        if self.batch is None or not place.isdigit() or number != b"%d" % self._number:
            return  # of a batch that is over
        outcome = self._verdict(arrival, self._subjects.get(int(place), self._subject))
        if outcome is not None:
            self.batch.settle(int(place), outcome)

    def _verdict(self, arrival: Arrival, subject: str) -> Outcome | None:
        """Judge an answer; None for one that is no acknowledgement of a stream."""
        if arrival.head.startswith(b"NATS/1.0 503"):
            return bad_endpoint(f"No stream of {self.peer} takes the subject {subject!r}")
        try:
            found = _object(arrival.body)
        except CodecError:
            return None
        error = found.get("error")
        if isinstance(error, dict):
            said = f"{self.peer} refused the message: {error.get('description')} ({error.get('err_code')})"
            return bad_message(said) if error.get("err_code") in _MESSAGE_CODES else bad_endpoint(said)
        stream, sequence = found.get("stream"), found.get("seq")
        if not isinstance(stream, str) or not stream or not isinstance(sequence, int) or sequence < 1:
            return None  # a service that answers on the subject; the stream's own answer may follow
        return Complete({"stream": stream, "sequence": sequence, "duplicate": found.get("duplicate") is True})


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise CodecError("JSON is expected") from None
    if not isinstance(found, dict):
        raise CodecError("an object is expected")
    return found
