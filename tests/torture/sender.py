"""A sender: `python -m tests.torture.sender NUMBER` does the operations of its plan until its quota is acknowledged."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

import menzil
from tests.torture.place import Me
from tests.torture.plan import Item, Op, Plan
from tests.torture.reach import REFUSALS, Conn, Over, connect, note, sqlstate

LATER = "clock_timestamp() + %s::float8 * interval '1 ms'"
LATERS = """array(select clock_timestamp() + n * interval '1 ms' from unnest(%s::float8[]) with ordinality u (n, i)
 order by i)"""
ONE = f"select menzil.send_with_options(%s, %s, %s, {LATER}, %s, null, {LATER}, %s)"
BATCH = "select menzil.send_batch(%s, %s::jsonb[])"
MANY = f"""select menzil.send_many(%s::text[], %s::jsonb[], %s::integer[], {LATERS}, %s::text[], null, {LATERS},
 %s::text[])"""

NEXT = "select (select id from menzil.message_peek(%s, 1))"


class Sender:
    """Sends, remembers what was acknowledged, and writes everything down."""

    def __init__(self, me: Me, plan: Plan, number: int) -> None:
        self.me, self.plan, self.number = me, plan, number
        self.conn: Conn | None = None
        self.client = menzil.Menzil(me.dsn, prepare=not me.pooled, max_connections=2, timeout=3)
        self.acked = 0
        self.recent: deque[int] = deque(maxlen=200)

    def run(self) -> None:
        """Go through the plan, no faster than it wants."""
        self.conn = connect(self.me)
        self.me.diary.note("here")
        while not self.me.place.begun:
            time.sleep(0.01)
        began, quota = time.monotonic(), self.plan.quota(self.number)
        number = 0
        while self.acked < quota and not self.me.place.over:
            op = self.plan.op(self.number, number)
            self.perform(op)
            number += 1
            due = began + self.acked / quota * self.plan.seconds
            time.sleep(max(0.0, min(0.5, due - time.monotonic())))
        self.me.diary.note("sender.done", acked=self.acked, ops=number)

    def perform(self, op: Op) -> None:
        conn = self.conn = self.conn if self.conn and not self.conn.closed else connect(self.me)
        self.me.diary.note("send.begin", op=op.number, items=[asdict(item) for item in op.items])
        if op.own:
            self._in_transaction(op, conn)
        else:
            self._by_itself(op, conn)
        if op.cancel is not None and self.recent:
            self._cancel(self._next_one(op) or self.recent[int(op.cancel * len(self.recent))], op)

    def _by_itself(self, op: Op, conn: Conn) -> None:
        """The call commits; what no answer tells is unknown."""
        try:
            ids = self._send(op, None if op.by == "client" else conn)
        except Exception as error:
            note(self.me.diary, "send", error)
            if sqlstate(error) in REFUSALS:
                self.me.diary.note("send.refused", op=op.number, sqlstate=sqlstate(error))
            else:
                self.me.diary.note("send.unknown", op=op.number)
        else:
            self._acknowledge(op, ids)

    def _in_transaction(self, op: Op, conn: Conn) -> None:
        try:
            conn.execute("begin")
            ids = self._send(op, conn)
            if op.wait_ms:
                time.sleep(op.wait_ms / 1000)
            if op.rollback:
                conn.execute("rollback")
        except Exception as error:
            note(self.me.diary, "send", error)
            self._undo(conn)
            if sqlstate(error) in REFUSALS:
                self.me.diary.note("send.refused", op=op.number, sqlstate=sqlstate(error))
            else:
                self.me.diary.note("send.undone", op=op.number)
            return
        if op.rollback:
            self.me.diary.note("send.undone", op=op.number)
            return
        try:
            tag = conn.execute("commit").statusmessage
        except Exception as error:
            note(self.me.diary, "commit", error)
            self._undo(conn)
            undone = sqlstate(error) in REFUSALS  # a SERIALIZABLE transaction may fail at its commit
            self.me.diary.note("send.undone" if undone else "send.unknown", op=op.number)
        else:
            if tag == "COMMIT":
                self._acknowledge(op, ids)
            else:
                self.me.diary.note("send.undone", op=op.number)

    def _undo(self, conn: Conn) -> None:
        """Leave no transaction behind: an open one ends with its connection."""
        try:
            conn.execute("rollback")
        except psycopg.Error:
            conn.close()

    def _acknowledge(self, op: Op, ids: list[int]) -> None:
        self.me.diary.note("send.ok", op=op.number, ids=ids)
        self.acked += len(ids)
        self.recent.extend(ids)

    def _send(self, op: Op, conn: Conn | None) -> list[int]:
        ways: dict[str, Callable[[Op, Conn | None], list[int]]] = {
            "single": self._singles,
            "batch": self._batch,
            "many": self._many,
        }
        return ways[op.way](op, conn)

    def _singles(self, op: Op, conn: Conn | None) -> list[int]:
        if op.by == "client" or conn is None:
            return [self.client.send(item.channel, {"ref": item.ref}, conn=conn, **_options(item)) for item in op.items]
        return [_one(conn, ONE, _values(item)) for item in op.items]

    def _batch(self, op: Op, conn: Conn | None) -> list[int]:
        channel, bodies = op.items[0].channel, [{"ref": item.ref} for item in op.items]
        if op.by == "client" or conn is None:
            return self.client.send_batch(channel, bodies, conn=conn)
        return list(_one(conn, BATCH, (channel, [Jsonb(body) for body in bodies])))

    def _many(self, op: Op, conn: Conn | None) -> list[int]:
        if op.by == "client" or conn is None:
            messages = [{"channel": i.channel, "payload": {"ref": i.ref}, **_options(i)} for i in op.items]
            return self.client.send_many(messages, conn=conn)
        columns = zip(*map(_values, op.items), strict=True)
        return list(_one(conn, MANY, [list(column) for column in columns]))

    def _next_one(self, op: Op) -> int | None:
        """The message that is leased next, where a mutant needs a cancel just then."""
        if not self.plan.options.get("cancel_next"):
            return None
        try:
            return _one(conn, NEXT, (op.items[0].channel,)) if (conn := self.conn) else None
        except psycopg.Error as error:
            note(self.me.diary, "peek", error)
            return None

    def _cancel(self, message: int, op: Op) -> None:
        """In a transaction that may stay open for a while, and may be rolled back."""
        conn = self.conn
        assert conn is not None
        try:
            conn.execute("begin")
            answer = _one(conn, "select menzil.message_cancel(%s)", (message,))
            if op.cancel_ms:
                time.sleep(op.cancel_ms / 1000)
            tag = conn.execute("rollback" if op.cancel_undone else "commit").statusmessage
        except psycopg.Error as error:
            note(self.me.diary, "cancel", error)
            self._undo(conn)
            if sqlstate(error) not in REFUSALS:
                self.me.diary.note("cancel.unknown", id=message, answer=None)
        else:
            self.me.diary.note("cancel.ok" if tag == "COMMIT" else "cancel.undone", id=message, answer=answer)


def _values(item: Item) -> tuple[Any, ...]:
    body = Jsonb({"ref": item.ref})
    return item.channel, body, item.priority, item.scheduled_ms, item.idem, item.expires_ms, item.key


def _options(item: Item) -> dict[str, Any]:
    given = {
        "priority": item.priority,
        "delay": None if item.scheduled_ms is None else item.scheduled_ms / 1000,
        "expires_in": None if item.expires_ms is None else item.expires_ms / 1000,
        "ordering_key": item.key,
        "idempotency_key": item.idem,
    }
    return {name: value for name, value in given.items() if value is not None}


def _one(conn: Conn, text: str, values: Any) -> Any:
    row = conn.execute(text.encode(), values).fetchone()
    assert row is not None
    return row[0]


if __name__ == "__main__":
    me = Me.here()
    with suppress(Over):
        Sender(me, me.place.plan(), int(sys.argv[1])).run()
