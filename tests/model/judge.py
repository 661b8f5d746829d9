"""Compares the real queue with the one on paper, and judges what a dequeue gave."""

from __future__ import annotations

from collections.abc import Sequence

from tests.model.engine import ENDED, QUEUE, Engine, Row
from tests.model.paper import Message, Queue


def compare(engine: Engine, paper: Queue) -> None:
    """Everything alive, and everything that ended since the last time."""
    real = {row[0]: row for row in engine.run(QUEUE)}
    _notice_expiry(engine, paper, real.keys())
    lost, ghosts = paper.live.keys() - real.keys(), real.keys() - paper.live.keys()
    assert not lost, f"not alive: {[paper.live[n] for n in lost]}"
    assert not ghosts, f"alive: {[real[n] for n in ghosts]}"
    for number, row in real.items():
        shown = list(row)
        shown[12], shown[13] = engine.clock.hour_of(row[12]), engine.clock.hour_of(row[13])
        shown[14] = engine.clock.hour_of(row[14])
        expected = _shown(paper.live[number])
        if expected[8] == "lost":
            assert "lease expired" in shown[8]
            expected[8] = shown[8]
        assert shown == expected, f"message {number}: {shown}, on paper {expected}"
    if paper.news:
        rows = {row[0]: list(row) for row in engine.run(ENDED, sorted(paper.news))}
        assert rows.keys() == paper.news, "not everything that ended is in the archive"
        for number, found in rows.items():
            m = paper.ended[number]
            error = found[6] if m.last_error == "lost" else m.last_error
            assert found == [m.id, m.status, m.channel, m.priority, m.attempts, m.retry_count, error], (
                f"message {number}"
            )
        paper.news.clear()


def _shown(m: Message) -> list[object]:
    unlock = None if m.unlock is None else m.unlock[0]
    return [
        *(m.id, m.status, m.channel, m.priority, m.ordering_key, m.idempotency_key, m.attempts, m.retry_count),
        *(m.last_error, m.state, m.payload, m.content, m.scheduled, m.expires, unlock),
    ]


def _notice_expiry(engine: Engine, paper: Queue, alive: Sequence[int] | object) -> None:
    """An expired message may have been met by somebody, or not yet."""
    gone = [m for m in paper.live.values() if m.id not in alive and m.status == "pending" and paper.expired(m)]  # type: ignore[operator]
    for message in gone:
        paper.end(message, "expired")


def lease(
    paper: Queue, rows: list[Row], hours: int, limit: int, channels: list[str] | None, in_order: bool = True
) -> None:
    """Leases on paper what one dequeue gave, row by row, and refuses what the documents do not allow."""
    assert len(rows) <= limit
    served: set[tuple[str, int]] = set()
    for row in rows:
        message = paper.live.get(row.id)
        assert message is not None, f"{row} does not exist"
        assert channels is None or row.channel in channels, f"{row} is of a channel that was not asked for"
        assert paper.gate(paper.channels[message.channel]) > 0, f"{message} is more than its channel may give"
        assert paper.may_be_leased(message), f"{message} may not be leased at {paper.now()}"
        for other in _ready(paper, channels) if in_order else []:
            before = other.priority > message.priority or (
                (other.channel, other.priority) == (message.channel, message.priority)
                and (other.place, other.id) < (message.place, message.id)
            )
            assert not before, f"{message} was leased before {other}"
        served.add((message.channel, message.priority))
        _lease_one(paper, message, hours, row.batch)
        shown = [message.id, message.channel, message.attempts, message.priority, message.ordering_key]
        assert shown == [row.id, row.channel, row.num_attempts, row.priority, row.ordering_key]
        assert [message.payload, message.content, message.state, message.retry_count] == [
            row.payload,
            row.content,
            row.state,
            row.retry_count,
        ]
    if in_order:
        _judge_turns(paper, served, channels)
    else:
        # It may not have looked at the log: who stands there takes a place among the lanes at the next look.
        paper.waiting = {}
    for lane in served:
        paper.served[lane] = paper.calls


def _lease_one(paper: Queue, message: Message, hours: int, batch: int) -> None:
    message.status, message.unlock, message.batch = "processing", paper.later(hours), batch
    message.attempts += 1
    message.holds_key = False
    channel = paper.channels[message.channel]
    if channel.release_hours:
        channel.releases.append(paper.now())
    if message.ordering_key is not None:
        paper.heads.pop((message.channel, message.ordering_key), None)


def _ready(paper: Queue, channels: list[str] | None) -> list[Message]:
    """Messages that nothing keeps from being leased."""
    open_now = {
        c.name for c in paper.channels.values() if (channels is None or c.name in channels) and paper.gate(c) > 0
    }
    return [m for m in paper.live.values() if m.channel in open_now and paper.must_be_leased(m)]


def left_over(paper: Queue, channels: list[str] | None) -> int:
    """How many a further dequeue would have to give, limits included."""
    count = 0
    for channel in paper.channels.values():
        if channels is None or channel.name in channels:
            count += min(
                paper.gate(channel),
                sum(m.channel == channel.name and paper.must_be_leased(m) for m in paper.live.values()),
            )
    return count


def note_who_waits(paper: Queue) -> None:
    """Before a dequeue: since which one each lane has been waiting for its turn without anything in its way."""
    paper.calls += 1
    waiting: dict[tuple[str, int], int] = {}
    for message in paper.live.values():
        lane = (message.channel, message.priority)
        if paper.must_be_leased(message) and not paper.channels[message.channel].is_limited():
            waiting[lane] = paper.waiting.get(lane, paper.calls)
    for message in paper.live.values():
        if message.status == "pending" and paper.expired(message):
            # To meet an expired message takes a turn and gives nothing.
            waiting.pop((message.channel, message.priority), None)
    paper.waiting = waiting


def _judge_turns(paper: Queue, served: set[tuple[str, int]], channels: list[str] | None) -> None:
    """Nobody is served twice while an equal that was there all the time is not served once."""
    for lane in served:
        before = paper.served.get(lane)
        for other, since in paper.waiting.items():
            if (
                before is None
                or other in served
                or other[1] != lane[1]
                or (channels is not None and other[0] not in channels)
            ):
                continue
            passed_over = since <= before and paper.served.get(other, -1) < before
            assert not passed_over, f"{lane} was served at {before} and again, while {other} has waited since {since}"
