"""What watching costs the way of a message, by server CPU: the pulse, the causes of dead letters, the lookups.

Each figure compares two databases on one server in short turns: one as menzil installs it, one without the thing.
- lookups: one side runs the job lookups between its turns, the other never. The job has a session of its own in a queue
  at work, so its processor time stands beside the figure, by the message. Messages without a correlation id and
  messages that have one each; sent, and sent, leased and completed.
- pulse: lives in both databases; one runs the job pulse when as much has passed as a busy queue passes in the 10 s
  between two rounds, the other never. The processor time of the job is part of its turn.
- tries in the order of the pulse: one failed try and one completed in each life; the index attempt_feed is dropped.
- causes: letters that die; the other side finds no cause and has the smaller index that was there before. Once all
  letters of a batch die of one error, as when an endpoint is down, and once each error has a number of its own.
A ratio above 1 is dearer. The lowest quarter of the turns counts, as in `--beside`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

from bench import kinds
from bench.kinds import PLAIN, Kind
from bench.session import Session
from bench.turns import Conn, Side, backend_cpu, connection, settings

WITH, WITHOUT = "with", "without"
MOST = 1.02
TURNS = {False: 60, True: 8}
SIZE = 100
LIVES = 10  # batches of a turn
ROUND = {False: 200, True: 20}  # batches between two rounds of the pulse

_CORRELATED = """
select menzil.send_many(array_fill(%(channel)s::text, array[%(size)s::integer]),
  array_fill(%(body)s::jsonb, array[%(size)s::integer]),
  p_correlation_ids => array(select gen_random_uuid() from generate_series(1, %(size)s + 0 * %(first)s)))"""
CORRELATED = Kind("with correlation ids", _CORRELATED)

_LOOKUPS = "select menzil._write_lookups(1000000)"
_NO_TRIES = "drop index menzil.attempt_feed"
_NO_CAUSE = (
    "create or replace function menzil._error_outline(p_error text) returns text language sql immutable return ''",
    "create or replace function menzil._cause_of_outline(p_outline text, out cause text, out error_class text,"
    " out cause_hash text) language plpgsql immutable as $$ begin end $$",
    "drop index menzil.dead_letter_cause, menzil.dead_letter_unexplained",
    "create index dead_letter_waiting on menzil.dead_letter (channel_id) where status = 'failed'",
)
_BURY = """
select count(*) from (select array_agg(id) as ids, array_agg(num_attempts) as attempts
                        from menzil.message_dequeue(600000, %s) having count(*) > 0) d
 cross join lateral menzil.message_fail(d.ids, d.attempts, array(select {} from unnest(d.ids) i))"""
_ALIKE = _BURY.format("'[PERMANENT] HTTP 503 from hooks.example.com: try again later, request 8c1f'")
_EACH = _BURY.format("'[PERMANENT] HTTP 422 from hooks.example.com: order ' || i || ' is not known'")


def run(session: Session) -> None:
    """One comparison after the other, each in two fresh databases."""
    with settings(session.server, fsync="off", autovacuum="off"):
        for kind in (PLAIN, CORRELATED):
            compare(session, f"lookups, send {kind.name}", [], partial(_sends, kind=kind), between=_LOOKUPS)
            compare(session, f"lookups, life {kind.name}", [], partial(_lives, kind=kind), between=_LOOKUPS)
        compare(session, "pulse, life in batches", [], lambda conn: _lives(conn, PLAIN), counted=True)
        compare(session, "pulse, life one by one", [], lambda conn: _lives(conn, kinds.SINGLE), counted=True)
        compare(session, "order of tries, life failed once", [_NO_TRIES], lambda conn: _lives(conn, kinds.KINDS[-1]))
        compare(session, "causes, death of one error", _NO_CAUSE, lambda conn: _deaths(conn, _ALIKE))
        compare(session, "causes, death of an error each", _NO_CAUSE, lambda conn: _deaths(conn, _EACH))


def _sends(conn: Conn, kind: Kind) -> int:
    kinds.send(conn, kind, SIZE)
    return SIZE


def _lives(conn: Conn, kind: Kind) -> int:
    return kinds.lives(conn, kind, SIZE, 1)


def _deaths(conn: Conn, statement: str) -> int:
    kinds.send(conn, PLAIN, SIZE)
    row = conn.execute(statement, (SIZE,)).fetchone()
    if row != (SIZE,):
        raise RuntimeError(f"Of {SIZE} letters {row} died.")
    return SIZE


def compare(
    session: Session,
    what: str,
    without: Sequence[str],
    work: Callable[[Conn], int],
    *,
    counted: bool = False,
    between: str | None = None,
) -> None:
    """Two databases in turns; `counted`: one of them runs the job pulse. `between`: one runs this between its turns."""
    dsns = {name: session.server.database() for name in (WITH, WITHOUT)}
    conns = {name: connection(dsn) for name, dsn in dsns.items()}
    try:
        for statement in without:
            conns[WITHOUT].execute(statement)
        batches = ROUND[session.quick] if counted else LIVES
        sides = {}
        for name, conn in conns.items():
            pulse = counted and name == WITH
            sides[name] = Side(conn, lambda conn=conn, pulse=pulse: _step(conn, work, batches, pulse=pulse))  # type: ignore[misc]
        apart: list[float] = []
        if between is not None:
            sides[WITH].prepare = lambda: apart.append(_cost(conns[WITH], between))
        turns = max(4, TURNS[session.quick] * LIVES // batches)
        _compete(sides, turns)
        tell(session, what, sides, [cost / (batches * SIZE) for cost in apart])
    finally:
        for conn in conns.values():
            conn.close()
        for dsn in dsns.values():
            session.server.remove(dsn)


def _cost(conn: Conn, statement: str) -> float:
    """Microseconds of the server for one statement."""
    before = backend_cpu(conn)
    conn.execute(statement)
    return backend_cpu(conn) - before


def _step(conn: Conn, work: Callable[[Conn], int], batches: int, *, pulse: bool) -> int:
    units = sum(work(conn) for _ in range(batches))
    if pulse:
        conn.execute("select menzil._pulse(100000)")
    return units


def _compete(sides: dict[str, Side], turns: int) -> None:
    """As bench.turns.compete, with two turns that do not count: plans become generic, tables are analyzed."""
    for number in range(turns + 2):
        if number == 1:
            for side in sides.values():
                side.conn.execute("analyze")
        for name in sides if number % 2 else reversed(sides):
            sides[name].turn(1, counts=number > 1)


def tell(session: Session, what: str, sides: dict[str, Side], apart: Sequence[float] = ()) -> None:
    """The ratio of the lower quartiles, with others beside it. `apart`: what a job costs a message."""
    costs = {name: side.server for name, side in sides.items()}
    low = {name: sorted(each)[len(each) // 4] for name, each in costs.items()}
    pairs = [one / other for one, other in zip(costs[WITH], costs[WITHOUT], strict=True)]
    beside = {
        "µs": [low[WITH]],
        "µs without": [low[WITHOUT]],
        "lowest": [min(costs[WITH]) / min(costs[WITHOUT])],
        "median of pairs": [median(pairs)],
    }
    if apart:
        beside["µs of the job"] = [sorted(apart)[len(apart) // 4]]
    session.figure(f"{what}, server CPU", [low[WITH] / low[WITHOUT]], at_most=MOST, beside=beside)
