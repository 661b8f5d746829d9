"""assert_sent, refute_sent and all_sent: what the queue holds, as the caller's transaction sees it."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

import psycopg

from menzil.model.durations import Seconds, in_seconds
from menzil.model.errors import UsageError
from menzil.ops import testing, working
from menzil.ops.borrow import Borrowed, is_async, run_on
from menzil.ops.op import Op
from menzil.testing.here import here
from menzil.testing.sent import ANY, Sent
from menzil.testing.wanted import Wanted

#: Seconds between two looks.
PAUSE = 0.02
#: Most names of channels that are read, to guess which one was meant.
NAMES = 100_000


class _Look:
    """Asks on the caller's connection, or on one of its own for as long as the question lasts."""

    def __init__(self, conn: Borrowed | None, dsn: str | None, what: str) -> None:
        if conn is not None and is_async(conn):
            raise UsageError("This connection is async.", hint=f"import {what} from menzil.testing.aio, and await it")
        self._conn = conn
        self._own = None if conn is not None else psycopg.connect(here(dsn, what), autocommit=True)

    def __enter__(self) -> _Look:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            self._own.close()

    def _run(self, op: Op[Any]) -> Any:
        conn = self._conn if self._conn is not None else self._own
        assert conn is not None
        return run_on(conn, op)

    def sent(self, channel: str | None) -> list[Sent]:
        return [Sent.of(record) for record in self._run(testing.sent(channel))]

    def names(self) -> list[str]:
        names: list[str] = self._run(working.channel_names(NAMES))
        return names


def assert_sent(
    channel: str,
    payload: Any = ANY,
    *,
    count: int | None = None,
    within: Seconds = 0,
    conn: Borrowed | None = None,
    dsn: str | None = None,
    **words: Any,
) -> Sent:
    """Fail unless such a message was sent, waiting or ended; return the first one.

    payload  what the payload contains: objects may have more keys; lists and values are equal
    count    exactly so many
    within   seconds to wait for it
    conn     the connection or session whose open transaction sent it
    words    ordering_key, priority, delay, headers, status … of the message; times may differ by a second
    """
    wanted, ends = Wanted(channel, payload, words, conn is not None), monotonic() + in_seconds("within", within)
    check_count(count)
    with _Look(conn, dsn, "assert_sent") as look:
        while True:
            sent = look.sent(channel)
            found = wanted.among(sent)
            if found and count in (None, len(found)):
                return found[0]
            if monotonic() >= ends:
                break
            sleep(PAUSE)
        names = [] if sent else look.names()
    raise AssertionError(failure(wanted, found, sent, names, count))


def refute_sent(
    channel: str,
    payload: Any = ANY,
    *,
    within: Seconds = 0,
    conn: Borrowed | None = None,
    dsn: str | None = None,
    **words: Any,
) -> None:
    """Fail if such a message was sent; with `within`, also if it is sent in the next so many seconds."""
    wanted, ends = Wanted(channel, payload, words, conn is not None), monotonic() + in_seconds("within", within)
    with _Look(conn, dsn, "refute_sent") as look:
        refuse_unknown(wanted, look.names())
        while True:
            if found := wanted.among(look.sent(channel)):
                raise AssertionError(wanted.unwanted(found))
            if monotonic() >= ends:
                return
            sleep(PAUSE)


def all_sent(
    channel: str | None = None,
    payload: Any = ANY,
    *,
    conn: Borrowed | None = None,
    dsn: str | None = None,
    **words: Any,
) -> list[Sent]:
    """Every message that was sent, or every one like this, the oldest first."""
    wanted = Wanted(channel or "", payload, words, conn is not None)
    with _Look(conn, dsn, "all_sent") as look:
        return wanted.among(look.sent(channel))


def check_count(count: int | None) -> None:
    """Refuse a count that is not a whole number above 0."""
    if count is not None and (type(count) is not int or count < 1):
        raise UsageError("count is a whole number, 1 or more.", hint="refute_sent says that nothing was sent")


def failure(wanted: Wanted, found: list[Sent], sent: list[Sent], names: list[str], count: int | None) -> str:
    """Say why assert_sent fails."""
    if count is None or not found:
        return wanted.not_found(sent, names)
    return wanted.not_so_many(found, sent, count)


def refuse_unknown(wanted: Wanted, names: list[str]) -> None:
    """A channel that does not exist was sent nothing for sure: a refute_sent with a slip would always pass."""
    if wanted.channel not in names:
        raise AssertionError(wanted.not_found([], names).partition("\n")[0])
