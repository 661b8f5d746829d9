"""Not before its schedule, not after its expiry, and not more often than its budget allows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.torture.invariants.facts import Facts, Violation

_PERMANENT = re.compile(r"\s*\[(PERMANENT|DISABLE)\]")


def early(facts: Facts) -> Iterator[Violation]:
    """No lease before the schedule, no end by expiry before the expiry."""
    hurried = {event.name for event in facts.tables.events if event.kind == "message.hurried"}
    for row in facts.rows:
        if row.status == "expired" and row.ended_at and row.expires_at and row.ended_at < row.expires_at:
            sentence = f"message {row.id} expired {row.expires_at - row.ended_at} before its expiry"
            yield Violation("early", row.id, sentence)
        if row.scheduled_at is None or str(row.id) in hurried:
            continue
        for one in facts.tries_by_id.get(row.id, ()):
            if one.leased_at < row.scheduled_at:
                before = row.scheduled_at - one.leased_at
                yield Violation("early", row.id, f"message {row.id} was leased {before} before its schedule")


def late(facts: Facts) -> Iterator[Violation]:
    """No lease at or after the expiry; a delivery that began in time may end later."""
    for row in facts.rows:
        if row.expires_at is None:
            continue
        for one in facts.tries_by_id.get(row.id, ()):
            if one.leased_at >= row.expires_at:
                after = one.leased_at - row.expires_at
                yield Violation("late", row.id, f"message {row.id} was leased {after} after its expiry")


def budget(facts: Facts) -> Iterator[Violation]:
    """As many failures as there are retries and one more, all counted; nothing after a permanent one."""
    usual = int(facts.tables.settings.get("default_max_retries", 10))
    for row in facts.rows:
        tries = facts.tries_by_id.get(row.id, ())
        failures = [one for one in tries if one.outcome in ("failed", "recovered")]
        channel = facts.channels.get(row.channel)
        allowed = channel.max_retries if channel is not None and channel.max_retries is not None else usual
        final = [one for one in failures if _PERMANENT.match(one.error or "")]
        if len(failures) > allowed + 1 or row.retry_count > allowed:
            sentence = f"message {row.id} failed {len(failures)} times and counted {row.retry_count} retries"
            yield Violation("budget", row.id, f"{sentence}, {allowed} allowed")
        elif row.retry_count != len(failures) - (row.status == "failed"):
            sentence = f"message {row.id} is {row.status} after {len(failures)} failures and counted {row.retry_count}"
            yield Violation("budget", row.id, f"{sentence} retries")
        elif row.status == "failed" and not final and len(failures) <= allowed:
            sentence = f"message {row.id} is dead after {len(failures)} failures, {allowed} retries allowed"
            yield Violation("budget", row.id, sentence)
        if any(one.attempt < tries[-1].attempt for one in final):  # type: ignore[misc]
            yield Violation("budget", row.id, f"message {row.id} was tried again after a permanent error")
