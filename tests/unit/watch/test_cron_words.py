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
        # A step that does not divide the hour, the day or the month begins anew with each of them.
        ("*/45 * * * *", "at minute 0 and 45 of every hour"),
        ("*/7 * * * *", "at minute 0, 7, 14 and so on to 56 of every hour"),
        ("0 */6 * * *", "at minute 0 every 6 hours"),
        ("0 */5 * * *", "at minute 0 past hour 0, 5, 10, 15 and 20"),
        ("*/15 */6 * * *", "every 15 minutes in every hour that 6 divides"),
        ("* 9-17/4 * * *", "every minute past hour 9, 13 and 17"),
        ("0 0 */2 * *", "at 00:00 on day 1, 3, 5 and so on to 31 of the month"),
        ("0 0 */2 * MON", "at 00:00 on day 1, 3, 5 and so on to 31 of the month, if it is a Monday"),
        ("0 0 1-7 * */3", "at 00:00 on day 1 to 7 of the month, if it is a Sunday, Wednesday or Saturday"),
        ("10-50/20 * * jan-dec/6 *", "at minute 10, 30 and 50 of every hour in January and July"),
    ],
)
def test_cron_is_told_in_words(cron: str, said: str) -> None:
    assert words(cron) == said
