"""pgmq's shape: tables and algorithm after pgmq, without the extension, in prepared statements of our own.

A message is read by moving its visibility time into the future, and ends by being deleted or moved to the archive. It
stands for the shape only: the extension itself was not measured, and may be slower or faster.
`python -m bench.peers.pgmq_shape delete|archive`, connected by the environment.
"""

from __future__ import annotations

import json
import sys
import time

import psycopg

from bench.payloads import numbers_literal

SIZE = 100  # messages of one read
HIDDEN = 30  # seconds

TABLES = """
create table pgmq_q (
  msg_id bigint generated always as identity primary key, read_ct integer not null default 0,
  enqueued_at timestamptz not null default now(), vt timestamptz not null, message jsonb);
create index pgmq_q_vt on pgmq_q (vt);
create table pgmq_a (
  msg_id bigint primary key, read_ct integer not null, enqueued_at timestamptz not null,
  archived_at timestamptz not null default now(), vt timestamptz not null, message jsonb);
create index pgmq_a_archived_at on pgmq_a (archived_at)"""
FILL = "insert into pgmq_q (vt, message) select now(), body from unnest(%s::jsonb[]) body"
LEFT = "select count(*) from pgmq_q"

_READ = """
with due as (
  select msg_id from pgmq_q where vt <= clock_timestamp() order by msg_id limit %s for update skip locked)
update pgmq_q q set vt = clock_timestamp() + %s * interval '1 s', read_ct = q.read_ct + 1
from due where q.msg_id = due.msg_id
returning q.msg_id, q.read_ct, q.enqueued_at, q.vt, q.message"""
_DELETE = "delete from pgmq_q where msg_id = any (%s::bigint[]) returning msg_id"
_ARCHIVE = """
with gone as (delete from pgmq_q where msg_id = any (%s::bigint[]) returning msg_id, read_ct, enqueued_at, vt, message)
insert into pgmq_a (msg_id, read_ct, enqueued_at, vt, message)
select msg_id, read_ct, enqueued_at, vt, message from gone returning msg_id"""


def main(end: str) -> None:
    """Read and end until nothing is left."""
    statement = _ARCHIVE if end == "archive" else _DELETE
    handled = 0
    with psycopg.connect("", autocommit=True, prepare_threshold=0) as conn:
        began, cpu = time.monotonic(), time.process_time()
        while rows := conn.execute(_READ, (SIZE, HIDDEN), binary=True).fetchall():
            conn.execute(statement, (numbers_literal([row[0] for row in rows]),), binary=True).fetchall()
            handled += len(rows)
        told = {"seconds": time.monotonic() - began, "cpu": time.process_time() - cpu, "handled": handled}
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
