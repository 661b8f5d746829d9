"""A cron expression is told in words that a person would use."""

from __future__ import annotations

import pytest

from menzil.watch.cron import words


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("0 3 * * *", "at 03:00 every day"),
        ("30 8,20 * * *", "at 08:30 and 20:30"),
        ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
        ("0 9 * * mon,sun", "at 09:00 on Monday and Sunday"),
        ("0 0 1 * *", "at 00:00 on day 1 of the month"),
        ("0 0 1 jan,7 *", "at 00:00 on day 1 of the month in January and July"),
        ("0 0 13 * 5", "at 00:00 on day 13 of the month or on Friday"),
        ("15 * * * *", "at minute 15 of every hour"),
        ("nonsense", "nonsense"),
    ],
)
def test_cron_is_told_in_words(cron: str, said: str) -> None:
    assert words(cron) == said
