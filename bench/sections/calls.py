"""Processor time of single calls on one connection, beside 0.1.0 and beside bare tables: the lowest of short turns.

The disk is not waited for while this lasts: what a commit costs is the same for all, and hides what the call costs.
"""

from __future__ import annotations

from collections.abc import Callable

from bench import kinds
from bench.kinds import PLAIN
from bench.loads.bare import TAKE_100
from bench.payloads import numbers_literal
from bench.server import CHANNEL
from bench.session import NEW, OLD, Session
from bench.turns import Conn, Side, compete, connection, settings

TURNS = {False: 16, True: 10}
L, NEXT, DELETE = "L", "one call", "DELETE … RETURNING"
SENDS = 1_000  # of one statement
BATCH = 1_000

_SEND = f"select count(menzil.send('{CHANNEL}', %s::jsonb)) from generate_series(1, {SENDS})"
_SEND_BATCH = f"select menzil.send_batch('{CHANNEL}', array_fill(%s::jsonb, array[{BATCH}]))"
_INSERT = """
create or replace function bare_insert(p_body jsonb) returns bigint language plpgsql as $$
declare v_id bigint;
begin
  insert into bare (payload) values (p_body) returning id into v_id;
  return v_id;
end $$"""
_INSERT_ARRAY = """
create or replace function bare_insert(p_bodies jsonb[]) returns bigint[] language plpgsql as $$
declare v_ids bigint[];
begin
  with i as (insert into bare (payload) select u.body from unnest(p_bodies) u(body) returning id)
  select array_agg(id) into v_ids from i;
  return v_ids;
end $$"""
_BARE = f"select count(bare_insert(%s::jsonb)) from generate_series(1, {SENDS})"
_BARE_BATCH = f"select bare_insert(array_fill(%s::jsonb, array[{BATCH}]))"
_LIFE = "insert into bare (payload) select %s::jsonb from generate_series(1, 100) returning id"


def run(session: Session) -> None:
    """Every version has a connection to a database of its own; L has one, too."""
    with settings(session.server, fsync="off") as changed:
        if not changed:
            session.say("this server waits for its disk: that is in the figures of both versions")
        conns = {name: connection(session.server.database(root)) for name, root in session.versions().items()}
        conns[L] = connection(session.server.database())
        try:
            sends(session, conns)
            for size, steps in ((100, 10), (500, 4), (10, 20), (1, 40)):
                takes(session, conns, size, steps)
        finally:
            for conn in conns.values():
                conn.close()


def sends(session: Session, conns: dict[str, Conn]) -> None:
    """Sends alone: many of one statement, so that no commit and no round trip is in the figure."""
    conns[L].execute(_INSERT)
    conns[L].execute(_INSERT_ARRAY)
    several = ("send", _SEND, _BARE, SENDS), ("send_batch(1000)", _SEND_BATCH, _BARE_BATCH, BATCH)
    for name, ours, bare, units in several:
        sides = {
            which: Side(conn, statement(conn, bare if which == L else ours, units)) for which, conn in conns.items()
        }
        compete(sides, 2, TURNS[session.quick])
        tell(session, name, sides)
        new, old, limit = sides[NEW], sides.get(OLD), sides[L]
        company = {"µs": [new.lowest], "µs bare insert": [limit.lowest]}
        if old:
            company["µs 0.1.0"] = [old.lowest]
            target = 0.75 if name == "send" else None
            session.figure(f"{name}, server CPU / 0.1.0", [new.lowest / old.lowest], at_most=target, beside=company)
        if name != "send":
            name = f"bare insert of arrays / {name}, server CPU"
            session.figure(name, [limit.lowest / new.lowest], at_least=0.75, beside=company)


def statement(conn: Conn, sql: str, units: int) -> Callable[[], int]:
    def step() -> int:
        conn.execute(sql, (kinds.BODY,), binary=True).fetchall()
        return units

    return step


def takes(session: Session, conns: dict[str, Conn], size: int, steps: int) -> None:
    """Lease and complete so many at a time, from a backlog that was sent in batches."""
    turns = TURNS[session.quick]
    sides = {L: Side(conns[L], life(conns[L]))}
    for name, conn in conns.items():
        if name != L:
            sides[name] = Side(conn, lambda conn=conn: kinds.take(conn, size))  # type: ignore[misc]
    has_next = conns[NEW].execute("select to_regproc('menzil.message_next') is not null").fetchone() == (True,)
    if has_next:
        sides[NEXT] = Side(conns[NEW], kinds.following(conns[NEW], size))
    if size == 100:
        sides[DELETE] = Side(conns[L], delete(conns[L]), prepare=lambda: fill_bare(conns[L], size * steps))
    for name in (NEW, OLD):
        if name in conns:
            top_up(conns[name], size * steps * (turns + 2) * (2 if name == NEW else 1))
    compete(sides, steps, turns)
    tell(session, f"{size} at a time", sides)
    conclude(session, size, sides)
    for name in (NEW, OLD):
        if name in conns:
            empty(conns[name])


def conclude(session: Session, size: int, sides: dict[str, Side]) -> None:
    """The figures of one size."""
    old, limit = sides.get(OLD), sides[L]
    calls = "two calls", "message_next"
    if size == 1:
        targets = dict(zip(calls, (0.65, 0.3), strict=True))
        for name, side in zip(calls, (sides[NEW], sides.get(NEXT)), strict=True):
            if side and old:
                company = {"µs": [side.lowest], "µs 0.1.0": [old.lowest], "with client": [side.both / old.both]}
                figure = f"lease and complete 1, {name}, server CPU / 0.1.0"
                session.figure(figure, [side.lowest / old.lowest], at_most=targets[name], beside=company)
        return
    for name, side in zip(calls, (sides[NEW], sides.get(NEXT)), strict=True):
        if side:
            company = {"µs server": [side.lowest], "µs with client": [side.both], "µs L": [limit.both]}
            if old:
                company |= {"0.1.0": [limit.both / old.both]}
            if DELETE in sides:
                company |= {DELETE: [limit.both / sides[DELETE].both]}
            figure = f"drain / L, {size} at a time, {name}, by CPU, disk not waited for"
            session.figure(figure, [limit.both / side.both], beside=company)


def life(conn: Conn) -> Callable[[], int]:
    """L: insert 100 rows, delete them."""

    def step() -> int:
        ids = [row[0] for row in conn.execute(_LIFE, (kinds.BODY,), binary=True)]
        conn.execute("delete from bare where id = any (%s::bigint[])", (numbers_literal(ids),))
        return len(ids)

    return step


def delete(conn: Conn) -> Callable[[], int]:
    return lambda: len(conn.execute(TAKE_100, binary=True).fetchall())


def fill_bare(conn: Conn, count: int) -> None:
    conn.execute("insert into bare (payload) select %s::jsonb from generate_series(1, %s)", (kinds.BODY, count))


def top_up(conn: Conn, count: int) -> None:
    """Send so many messages in batches."""
    for _ in range(-(-count // BATCH)):
        kinds.send(conn, PLAIN, BATCH)


def empty(conn: Conn) -> None:
    """Take what is left, so that the next size begins with a backlog of its own."""
    while kinds.take(conn, 1_000):
        pass


def tell(session: Session, what: str, sides: dict[str, Side]) -> None:
    costs = ", ".join(f"{name} {side.lowest:.2f} + {min(side.client):.2f}" for name, side in sides.items())
    session.say(f"{what}, µs of server + client per message: {costs}")
