"""Plain tables: what the server can do at best."""

from __future__ import annotations

from bench.crew import Step
from bench.loads.connections import connect
from bench.payloads import numbers_literal, text

TABLE = "create table bare (id bigserial primary key, payload jsonb)"

_INSERT_100 = "insert into bare (payload) select %s::jsonb from generate_series(1, 100) returning id"
_DELETE = "delete from bare where id = any (%s::bigint[])"
_INSERT = "insert into bare (payload) values (%s::jsonb) returning id"
_COPY = "copy bare (payload) from stdin"
TAKE_100 = """
delete from bare where id = any (array(select id from bare order by id limit 100 for update skip locked))
returning id, payload"""


def life_cycle(dsn: str, worker: int) -> Step:
    """L: insert 100 rows, delete the same 100 rows."""
    conn, body = connect(dsn), text(worker)
    # Statistics that were taken while the table was empty must not make the DELETE read all of it.
    conn.execute("set enable_seqscan = off")

    def step() -> int:
        ids = [row[0] for row in conn.execute(_INSERT_100, (body,), binary=True)]
        conn.execute(_DELETE, (numbers_literal(ids),))
        return len(ids)

    return step


def insert(dsn: str, worker: int, body: str = "") -> Step:
    """One row, one commit."""
    conn, body = connect(dsn), body or text(worker)

    def step() -> int:
        conn.execute(_INSERT, (body,), binary=True).fetchone()
        return 1

    return step


def copy(dsn: str, worker: int, size: int) -> Step:
    """Rows by COPY, one commit for so many."""
    conn, bodies = connect(dsn), [text(number) for number in range(worker, worker + size)]

    def step() -> int:
        with conn.cursor().copy(_COPY) as copying:
            copying.write("\n".join([body.replace("\\", "\\\\") for body in bodies]) + "\n")
        return size

    return step


def take(dsn: str, **_: object) -> Step:
    """The simplest queue there is: DELETE … RETURNING of the first 100 rows that no other session has locked."""
    conn = connect(dsn)

    def step() -> int:
        return len(conn.execute(TAKE_100, binary=True).fetchall())

    return step
