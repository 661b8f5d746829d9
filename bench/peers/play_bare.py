"""A queue of bare SQL, the limit: a table, SKIP LOCKED, a time until which a message is leased, and DELETE.

It has no retries, no order, no history and no notice; every statement is prepared and takes a hundred messages.
"""

from __future__ import annotations

import asyncio
import json
import time

import psycopg

from bench.payloads import array_literal, numbers_literal
from bench.peers.stage import BODY, Handled, Player, main

SIZE = 100  # messages of one lease
LEASE = 30  # seconds
TEXT = json.dumps(BODY)

TABLE = """
create table bare_queue (
  id bigint generated always as identity primary key, attempts integer not null default 0,
  sent_at timestamptz not null default now(), visible_at timestamptz not null default now(), body jsonb)"""
INDEX = "create index bare_queue_visible_at on bare_queue (visible_at)"
LEFT = "select count(*) from bare_queue"

_SEND = "insert into bare_queue (body) values (%s::jsonb) returning id"
_BATCH = "insert into bare_queue (body) select body from unnest(%s::jsonb[]) body returning id"
_LEASE = """
with due as (
  select id from bare_queue where visible_at <= clock_timestamp() order by id limit %s for update skip locked)
update bare_queue q set visible_at = clock_timestamp() + %s * interval '1 s', attempts = q.attempts + 1
from due where q.id = due.id
returning q.id, q.attempts, q.body"""
_END = "delete from bare_queue where id = any (%s::bigint[]) returning id"


class Bare(Player):
    """One connection to send, one to work."""

    async def install(self) -> None:
        with psycopg.connect("", autocommit=True) as conn:
            conn.execute(TABLE)
            conn.execute(INDEX)

    async def open(self) -> None:
        self.conn = psycopg.connect("", autocommit=True, prepare_threshold=0)

    async def send(self) -> None:
        self.conn.execute(_SEND, (TEXT,), binary=True).fetchone()

    async def batch(self, size: int) -> None:
        self.conn.execute(_BATCH, (array_literal([TEXT] * size),), binary=True).fetchall()

    async def work(self, _mode: str, handled: Handled) -> None:
        def loop() -> None:
            while True:
                if not self._round(conn, handled):
                    time.sleep(0.001)

        conn = psycopg.connect("", autocommit=True, prepare_threshold=0)
        self.running = asyncio.get_running_loop().run_in_executor(None, loop)

    async def drain(self, _mode: str, _count: int, handled: Handled) -> None:
        with psycopg.connect("", autocommit=True, prepare_threshold=0) as conn:
            while self._round(conn, handled):
                pass

    def _round(self, conn: psycopg.Connection, handled: Handled) -> int:
        rows = conn.execute(_LEASE, (SIZE, LEASE), binary=True).fetchall()
        if rows:
            handled(len(rows))
            conn.execute(_END, (numbers_literal([row[0] for row in rows]),), binary=True).fetchall()
        return len(rows)


if __name__ == "__main__":
    main(Bare())
