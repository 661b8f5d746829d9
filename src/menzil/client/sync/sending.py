# Written by tools/twins.py from ../aio/sending.py. Change that file, then run: python tools/twins.py
"""SEND."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack

from menzil.client.base import Client
from menzil.model.options import Send, SendOptions
from menzil.ops import sending as ops
from menzil.ops.borrow import Borrowed


class Sending(Client):
    """Messages on their way in. With `conn` they are part of your transaction, and vanish with it."""

    def send(
        self,
        channel: str,
        payload: Any,
        *,
        conn: Borrowed | None = None,
        **options: Unpack[SendOptions],
    ) -> int:
        """Send one message to a channel or an endpoint and return its id.

        A bytes payload travels as it is; anything else as JSON. Options: priority (0–10, higher first), delay (seconds)
        or scheduled_at, expires_in (seconds) or expires_at, ordering_key, idempotency_key, correlation_id, headers,
        metadata.
        """
        spans = self._spans()
        if spans is None:
            return self._run(ops.send(channel, payload, dumps=self._dumps, **options), conn)
        with spans.send(channel, payload, options) as sending:
            op = ops.send(channel, payload, dumps=self._dumps, **sending.options)
            return sending.sent(self._run(op, conn), self._where(conn))

    def send_batch(
        self, channel: str, payloads: Iterable[Any], priority: int = 0, *, conn: Borrowed | None = None
    ) -> list[int]:
        """Send many payloads to one channel in one statement; return their ids in the same order."""
        if self._spans() is not None and (payloads := list(payloads)):
            return self.send_many([Send(channel, payload, priority) for payload in payloads], conn=conn)
        return self._run(ops.send_batch(channel, payloads, priority, dumps=self._dumps), conn)

    def send_many(self, messages: Iterable[Send | Mapping[str, Any]], *, conn: Borrowed | None = None) -> list[int]:
        """Send many messages with options of their own, all or none; return their ids in the same order."""
        spans = self._spans()
        if spans is not None and (messages := list(messages)):
            with spans.send_many(messages) as sending:
                answers = self._run_all(ops.send_many(sending.messages, dumps=self._dumps), conn)
                return sending.sent([id for ids in answers for id in ids], self._where(conn))
        batches = ops.send_many(messages, dumps=self._dumps)
        if not batches:
            return []
        answers = self._run_all(batches, conn)
        return [message_id for ids in answers for message_id in ids]

    def enable_fast_mode(self, conn: Borrowed) -> None:
        """Let the commit of this transaction not wait for the disk: a crash of the server may lose it."""
        self._run(ops.enable_fast_mode(), conn)
