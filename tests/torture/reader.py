"""A reader of the change feeds: every row of the archive and of the event log once, whoever is killed, itself included.

It goes on from the last row it wrote down, as a reader with a checkpoint does.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import psycopg

from tests.torture.history import read
from tests.torture.place import Me
from tests.torture.reach import Over, connect, note

FEEDS = {"archive": "ended_xid", "event_log": "xid"}
#: Ordered by the column itself: the text of the same name that is selected would put 999 behind 1000.
NEXT = {
    "archive": """select f.ended_xid::text, f.id from menzil.feed_between(%(xid)s, %(to)s) f
 where (f.ended_xid, f.id) > (%(xid)s::xid8, %(id)s) order by f.ended_xid, f.id limit 2000""",
    "event_log": """select f.xid::text, f.id from menzil.event_log f where (f.xid, f.id) > (%(xid)s::text::xid8, %(id)s)
 and f.xid < %(to)s::text::xid8 order by f.xid, f.id limit 2000""",
}

#: The same with a bug: an id that is committed late is never seen.
BY_ID = "select {xid}::text, id from menzil.{feed} where id > %(id)s order by id limit 2000"


class Reader:
    """Its places in both feeds."""

    def __init__(self, me: Me) -> None:
        self.me, self.plan = me, me.place.plan()
        self.places = dict.fromkeys(FEEDS, (0, 0))
        for entry in read(me.place.diaries, "reader-*"):
            if entry.kind == "feed":
                self.places[entry["table"]] = max(self.places[entry["table"]], (entry["xid"], entry["id"]))

    def run(self) -> None:
        conn = connect(self.me)
        self.me.diary.note("here")
        while True:
            over = self.me.place.over  # read before the feed: what came before it is read, too
            try:
                conn = connect(self.me) if conn.closed else conn
                found = sum(self.turn(conn, feed) for feed in FEEDS)
            except psycopg.Error as error:
                note(self.me.diary, "feed", error)
                continue
            if over and not found and not any(self.behind(conn, feed) for feed in FEEDS):
                return
            if not found:
                time.sleep(0.05)

    def behind(self, conn: psycopg.Connection[Any], feed: str) -> bool:
        """Whether there are rows that are not complete yet: somebody has a transaction open."""
        if self.plan.mutant == "feed_by_id":
            return False  # what it passed over it does not know
        text = f"select exists (select from menzil.{feed} where ({FEEDS[feed]}, id) > (%s::text::xid8, %s))"
        row = conn.execute(text.encode(), (str(self.places[feed][0]), self.places[feed][1])).fetchone()
        return row == (True,)

    def turn(self, conn: psycopg.Connection[Any], feed: str) -> int:
        """Read on, up to where the feed is complete."""
        position = conn.execute("select xid from menzil.feed_position(%s)", (feed,)).fetchone()
        assert position is not None
        xid, row_id = self.places[feed]
        text = BY_ID.format(feed=feed, xid=FEEDS[feed]) if self.plan.mutant == "feed_by_id" else NEXT[feed]
        rows = conn.execute(text.encode(), {"xid": str(xid), "id": row_id, "to": position[0]}).fetchall()
        for xid, row_id in rows:
            self.me.diary.note("feed", xid=int(xid), id=row_id, table=feed)
            self.places[feed] = (int(xid), row_id)
        return len(rows)


if __name__ == "__main__":
    with suppress(Over):
        Reader(Me.here()).run()
