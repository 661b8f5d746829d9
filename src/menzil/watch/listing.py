"""Lists of messages: which way a search goes, how far one page looks, and where the next one begins."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from menzil.model.errors import UsageError
from menzil.model.redact import Redactor
from menzil.ops import looking, looking_messages, searching
from menzil.ops.searching import LAST_ID, WINDOW, Wanted
from menzil.watch.finding import Run
from menzil.watch.names import knowing_names
from menzil.watch.redaction import redacted
from menzil.watch.search import Search, parse

#: Messages that an index finds by a key and the first page shows; others of the key are found by looking through all.
HELD = 200

#: Ids follow the clock as closely as transactions are short: a message may be created so much before its neighbours.
SLACK = timedelta(minutes=5)


def search(
    run: Run,
    line: str | Search = "",
    *,
    limit: int = 50,
    before: int | None = None,
    window: int = WINDOW,
    redactor: Redactor | None = None,
) -> dict[str, Any]:
    """Return {"messages", "next_before", "looked_through", "search"}, newest first.

    `next_before` is where the next page begins; None when there is no more. A page may be short or empty and yet have a
    next one: then it looked through `window` messages, and few of them match. The first page of a search by key has,
    besides `limit` messages, up to HELD that an index finds at any age.
    """
    asked = (parse(line) if isinstance(line, str) else line).at(run(looking.now()))
    if asked.since is not None and asked.until is not None and asked.since >= asked.until:  # type: ignore[operator]
        hint = "of two distances the longer one is since: since:2h until:1h"
        raise UsageError("No time lies after since: and before until:, so nothing can match.", hint=hint)
    page = _Page(run, asked, limit, before, window)
    if asked.channel is not None:
        with knowing_names(run, asked.channel):
            run(looking_messages.demand_channel(asked.channel))
    if asked.id is not None:
        found = page.known(run(searching.of_ids(page.wanted, asked.id, limit + 1, page.before)))
    elif asked.corr is not None:
        found = page.known(run(searching.of_correlation(page.wanted, asked.corr, limit + 1, page.before)))
    elif asked.status == ("processing",) and asked == Search(status=asked.status, channel=asked.channel):
        flying = looking_messages.messages(
            limit=limit + 1, channel=asked.channel, status="processing", before=page.before
        )
        ids = [row["id"] for row in run(flying)]
        found = page.known(run(searching.of_ids(page.wanted, ids, limit + 1, page.before)))
    else:
        found = page.window()
    found["messages"] = [redacted(row, redactor) for row in found["messages"]]
    return {**found, "search": asked.asked()}


class _Page:
    """One page of a search."""

    def __init__(self, run: Run, asked: Search, limit: int, before: int | None, window: int) -> None:
        self.run, self.asked, self.limit, self.size = run, asked, limit, window
        self.before = min(before or LAST_ID, asked.before or LAST_ID)
        self.first = before is None
        assert not isinstance(asked.since, timedelta), "points in time by now"
        assert not isinstance(asked.until, timedelta)
        self.since, self.until = asked.since, asked.until
        self.wanted = Wanted(
            channel=asked.channel,
            status=asked.status,
            key=asked.key,
            idem=asked.idem,
            corr=asked.corr,
            error=asked.error,
            since=self.since,
            until=self.until,
        )

    def known(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """A page of rows that an index found, so that there are no others."""
        more = len(rows) > self.limit
        shown = rows[: self.limit]
        return {"messages": shown, "next_before": shown[-1]["id"] if more else None, "looked_through": len(shown)}

    def window(self) -> dict[str, Any]:
        """A page of those in a window that match, and on the first page those that a key finds besides."""
        start = self._start()
        rows, end = self.run(searching.in_window(self.wanted, self.limit + 1, start, self.size))
        more = len(rows) > self.limit
        rows = rows[: self.limit]
        reached = rows[-1]["id"] if more else None
        if self.asked.key is not None or self.asked.idem is not None:
            rows = self._with_keys(rows)
        if more:
            return {"messages": rows, "next_before": reached, "looked_through": None}
        passed = 0 if end is None else end["passed"]
        over = end is None or passed < self.size or self._too_old(end["created_at"])
        return {"messages": rows, "next_before": None if over else end["id"], "looked_through": passed}  # type: ignore[index]

    def _start(self) -> int:
        """Where the window begins: messages that are younger than asked for are not looked through."""
        if self.until is None:
            return self.before
        found = self.run(searching.message_id_at(self.until + SLACK))
        return self.before if found is None else min(self.before, found)

    def _too_old(self, oldest: Any) -> bool:
        return self.since is not None and bool(oldest < self.since - SLACK)

    def _with_keys(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What an index finds by the key is on the first page, and no other page repeats it."""
        asked = self.asked
        held = {*self.run(searching.messages_with_key(asked.key, asked.idem, asked.channel, HELD))}
        if not self.first:
            return [row for row in rows if row["id"] not in held]
        ids = sorted(held - {row["id"] for row in rows})
        found = self.run(searching.of_ids(self.wanted, ids, len(ids), self.before)) if ids else []
        return sorted([*rows, *found], key=lambda row: -row["id"])
