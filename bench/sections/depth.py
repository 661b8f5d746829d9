"""Pages touched per message by dequeue and complete, as the queue gets deeper and wider."""

from __future__ import annotations

from dataclasses import dataclass

from bench import fill
from bench.buffers import Cost, cost
from bench.server import connected
from bench.session import Session

MOST_PAGES = 22  # to lease and complete one of a hundred messages that lie in a hundred lanes


@dataclass(frozen=True)
class Shape:
    """How the messages of one series are spread."""

    name: str
    channels: int
    per_key: int = 0  # messages of one ordering key; 0: no keys
    hot_key: int = 0  # that many messages behind one more key
    limited: bool = False  # channels have a concurrency and a rate limit


def run(session: Session) -> None:
    """Every shape at every depth it can have."""
    quick = session.quick
    depths = [10_000, 50_000] if quick else [10_000, 100_000, 1_000_000]
    many = 10_000 if quick else 100_000
    hot = 20_000 if quick else 100_000
    plain = {
        count: series(session, Shape(f"{count:,} channel{'s' if count > 1 else ''}", count), depths)
        for count in (1, 1_000, many)
    }
    narrow, wide = plain[1], plain[many]
    for depth in wide:
        # The bound is in pages, not in shares of one channel: there a hundred messages share one turn and half a page
        # each, while with one message per channel every message pays for a turn of its own.
        name = f"pages per message, {many:,} channels, {depth:,} deep"
        beside = {"1 channel": [narrow[depth].total]}
        session.figure(name, [wide[depth].total], at_most=MOST_PAGES, unit="a message", beside=beside)
    shapes = [
        Shape("ordering keys of 10 messages, 1 channel", 1, per_key=10),
        Shape("ordering keys of 10 messages, 1,000 channels", 1_000, per_key=10),
        Shape(f"one key holding {hot:,} beside them", 1, per_key=10, hot_key=hot),
        Shape("1,000 channels with concurrency and rate limits", 1_000, limited=True),
    ]
    for shape in shapes:
        series(session, shape, depths if not shape.hot_key else depths[:2])


def series(session: Session, shape: Shape, depths: list[int]) -> dict[int, Cost]:
    """The same database filled deeper and deeper."""
    found: dict[int, Cost] = {}
    filled = 0
    with connected(session.server.database()) as conn:
        limits = {"concurrency": 50, "interval_ms": 1_000, "rate": 1_000} if shape.limited else {}
        fill.channels(conn, shape.channels, **limits)
        if shape.hot_key:
            session.say(f"{shape.name}: fills one key with {shape.hot_key:,}")
            fill.spread(conn, 0, shape.hot_key, 1, keys=1)
        for depth in depths:
            if depth < shape.channels:
                continue
            session.say(f"{shape.name}: fills to {depth:,}")
            keys = depth // shape.per_key if shape.per_key else 0
            fill.spread(conn, filled, depth - filled, shape.channels, keys)
            filled = depth
            fill.settle(conn)
            found[depth] = each = cost(conn)
            session.say(
                f"{shape.name}, depth {depth:,}: dequeue {each.dequeue:.2f}, complete {each.complete:.2f}, "
                f"dearest dequeue {each.worst:.2f} pages per message; send {each.send:.1f}"
            )
    shallow, deep = found[min(found)], found[max(found)]
    company = {f"at {depth:,}": [each.total] for depth, each in found.items()}
    if len(found) > 1:
        name = f"pages per message, {shape.name}, {max(found):,} / {min(found):,} deep"
        session.figure(name, [deep.total / shallow.total], at_most=1.2, beside=company)
    if shape.channels == 1 and not shape.per_key:
        name = f"pages per send, {max(found):,} / {min(found):,} deep"
        company = {f"at {depth:,}": [each.send] for depth, each in found.items()}
        session.figure(name, [deep.send / shallow.send], at_most=1.2, beside=company)
    return found
