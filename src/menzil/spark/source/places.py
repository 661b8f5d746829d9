"""Places in the change feed, and the SQL between two of them. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from menzil.model.errors import UsageError

#: The index is the feed: a plan that reads everything is never right, but old statistics may suggest it.
SETTINGS = {"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off"}


#: As Spark keeps a place in a checkpoint.
Offset = dict[str, Any]


@dataclass(frozen=True)
class Feed:
    """A relation that is read by transaction id and id: where its rows are, and where they are counted."""

    name: str
    xid: str
    rows: str
    places: str


@dataclass(frozen=True)
class Place:
    """Everything up to and including (xid, id) was read. `drop` is the latest clean-up of history known here."""

    xid: int
    id: int
    drop: int = 0
    server: str | None = None  # which gave out the transaction ids; a checkpoint of an older menzil does not know

    @property
    def place(self) -> tuple[int, int]:
        """What is compared."""
        return (self.xid, self.id)

    def offset(self) -> Offset:
        """As Spark keeps it in a checkpoint."""
        return {"xid": self.xid, "id": self.id, "drop": self.drop} | ({"server": self.server} if self.server else {})

    @classmethod
    def of(cls, offset: Offset) -> Place:
        """As it was kept."""
        return cls(int(offset["xid"]), int(offset["id"]), int(offset.get("drop", 0)), offset.get("server"))


def feed(table: str) -> Feed:
    """The feed of this relation."""
    feeds = {
        "archive": Feed("archive", "ended_xid", "_ended", "_ends"),
        "event_log": Feed("event_log", "xid", "event_log", "event_log"),
    }
    if table not in feeds:
        raise UsageError(f"{table} is no change feed.", hint=f"stream one of {', '.join(feeds)}")
    return feeds[table]


def parse(text: str, drop: int) -> Place:
    """`startingOffsets` as JSON: {"xid": 1234, "id": 56}."""
    try:
        given: Any = json.loads(text)
        place = Place(int(given["xid"]), int(given.get("id", 0)), int(given.get("drop", drop)))
    except (ValueError, TypeError, KeyError, AttributeError):
        place = Place(-1, 0)
    if place.xid < 0:
        raise UsageError(
            f"startingOffsets is {text!r}.", hint='use earliest, latest, or a place such as {"xid": 1234, "id": 56}'
        )
    return place


def last_of_batch(feed: Feed, begin: Place, end: Place, most: int | None) -> str:
    """The last row of a batch of at most so many rows, and how many it has; without a limit, whether there is a row."""
    limit = 1 if most is None else most
    return (
        f"select xid::text, id, n from (select {feed.xid} as xid, id, row_number() over (order by {feed.xid}, id) as n "
        f"from menzil.{feed.places} where {_between(feed, begin, end)} order by {feed.xid}, id limit {limit}) r "
        "order by n desc limit 1"
    )


def runs(feed: Feed, begin: Place, end: Place, rows: int) -> str:
    """Runs of so many rows: the last place of each, and its least and greatest id."""
    return (
        "select (array_agg(xid::text order by n desc))[1], (array_agg(id order by n desc))[1], min(id), max(id) from ("
        f"select {feed.xid} as xid, id, row_number() over (order by {feed.xid}, id) as n "
        f"from menzil.{feed.places} where {_between(feed, begin, end)}) r group by (n - 1) / {rows} order by max(n)"
    )


def select(feed: Feed, projection: str, begin: Place, end: Place, window: str | None = None) -> str:
    """The rows after one place, up to another, in order. Within a window of time, when it is known to hold them all."""
    where = _between(feed, begin, end) + (f" and {window}" if window else "")
    return f'select {projection} from menzil.{feed.rows} f where {where} order by f."{feed.xid}", f."id"'


def _between(feed: Feed, begin: Place, end: Place) -> str:
    # The index of ends knows transaction ids only.
    return (
        f"{feed.xid} >= '{begin.xid}'::xid8 and ({feed.xid}, id) > ('{begin.xid}'::xid8, {begin.id}::bigint) "
        f"and {feed.xid} <= '{end.xid}'::xid8 and ({feed.xid}, id) <= ('{end.xid}'::xid8, {end.id}::bigint)"
    )
