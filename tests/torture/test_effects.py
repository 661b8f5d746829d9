"""An effect too many and one too few are both seen."""

from __future__ import annotations

from tests.torture import effects
from tests.torture.tables import Row, Tables


def row(number: int, status: str = "completed", channel: str = effects.CHANNEL) -> Row:
    return Row(number, None, channel, status, None, None, 1, 0, *[None] * 8)


def test_every_message_with_one_effect_is_right() -> None:
    tables = Tables(ended=[row(1), row(2), row(3, "failed"), row(4, channel="elsewhere")])
    assert list(effects.violations([2, 1], tables)) == []


def test_an_effect_that_happened_twice_never_or_without_its_message_is_seen() -> None:
    tables = Tables(ended=[row(1), row(2), row(3, "failed")])
    found = [(one.invariant, one.subject) for one in effects.violations([1, 1, 3], tables)]
    assert found == [("two_ends", 1), ("two_ends", 3), ("undelivered", 2)]
