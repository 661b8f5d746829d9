"""Limits of channels: leases at once and in any interval. Grants are judged, by the limit of their moment."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from tests.torture.invariants.facts import Facts, Violation
from tests.torture.tables import Channel, Event

_ALWAYS = datetime.min.replace(tzinfo=UTC)


class Limit(NamedTuple):
    """What a channel allows from a moment on; `rated_since` is when it got a rate at all."""

    since: datetime
    max_concurrency: int | None
    interval: timedelta
    count: int  # type: ignore[assignment]
    rated_since: datetime


class Span(NamedTuple):
    """A lease: who, from when, until when (None: it is held now)."""

    id: int
    leased_at: datetime
    ended_at: datetime | None


def concurrency(facts: Facts) -> Iterator[Violation]:
    """Live leases of a channel never exceed its limit when one is granted."""
    for channel, spans, limits in _limited(facts):
        if all(limit.max_concurrency is None for limit in limits):
            continue
        steps = sorted(
            [(span.leased_at, 1, span.id) for span in spans]
            + [(span.ended_at, 0, span.id) for span in spans if span.ended_at is not None]
        )
        flying = 0
        for at, is_lease, message in steps:
            flying += 1 if is_lease else -1
            allowed = _at(limits, at).max_concurrency
            if is_lease and allowed is not None and flying > allowed:
                sentence = f"message {message} was leased as number {flying} of channel {channel}, {allowed} allowed"
                yield Violation("concurrency", message, sentence)


def rate(facts: Facts) -> Iterator[Violation]:
    """Never more than release_count leases in any interval, wherever it starts; it counts from when it was put on."""
    for channel, spans, limits in _limited(facts):
        times = sorted(span.leased_at for span in spans)
        for span in spans:
            limit = _at(limits, span.leased_at)
            if not limit.interval:
                continue
            after = bisect_right(times, span.leased_at - limit.interval)
            first = max(after, bisect_left(times, limit.rated_since))
            count = bisect_right(times, span.leased_at) - first
            if count > limit.count:
                sentence = f"message {span.id} was leased as number {count} of channel {channel} within"
                yield Violation("rate", span.id, f"{sentence} {limit.interval}, {limit.count} allowed")


def _limited(facts: Facts) -> Iterator[tuple[str, list[Span], list[Limit]]]:
    spans: dict[str, list[Span]] = defaultdict(list)
    for one in facts.tables.tries:
        spans[one.channel].append(Span(one.id, one.leased_at, one.ended_at))
    for row in facts.tables.left:
        if row.leased_at is not None:
            spans[row.channel].append(Span(row.id, row.leased_at, None))
    events: dict[str, list[Event]] = defaultdict(list)
    for event in facts.tables.events:
        if event.kind in ("channel.created", "channel.changed") and event.name and event.new:
            events[event.name].append(event)
    for channel in facts.tables.channels:
        yield channel.name, spans[channel.name], _limits(channel, events[channel.name])


def _limits(channel: Channel, events: Sequence[Event]) -> list[Limit]:
    """Follow the limits through the event log; where it says nothing, the present ones have always held."""
    if not events:
        interval = timedelta(milliseconds=channel.release_interval_ms)
        return [Limit(_ALWAYS, channel.max_concurrency, interval, channel.release_count, _ALWAYS)]
    limits = [Limit(_ALWAYS, None, timedelta(), 1, _ALWAYS)]
    for event in sorted(events, key=lambda event: event.at):
        new = event.new or {}
        interval = timedelta(milliseconds=new.get("release_interval_ms") or 0)
        since = limits[-1].rated_since if limits[-1].interval else event.at
        limits.append(Limit(event.at, new.get("max_concurrency"), interval, new.get("release_count") or 1, since))
    return limits


def _at(limits: Sequence[Limit], at: datetime) -> Limit:
    return limits[bisect_right([limit.since for limit in limits], at) - 1]
