"""Cron expressions that may be none, read by a second reader that was written from the documents alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.asking import refusal
from tests.fuzz.pace import examples

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
FIELDS: list[tuple[int, int, list[str]]] = [(0, 59, []), (0, 23, []), (1, 31, []), (1, 12, MONTHS), (0, 7, DAYS)]

words = st.sampled_from(
    ["*", "0", "1", "5", "7", "12", "23", "31", "59", "60", "MON", "sun", "Jan", "DEC", "L", "?", "007", "-1", "٣", ""]
)
items = st.one_of(
    words,
    st.tuples(words, words).map("-".join),
    st.tuples(words, st.sampled_from(["1", "2", "5", "0", "59", "60", "*", "x", ""])).map("/".join),
    st.tuples(words, words, st.sampled_from(["1", "2", "31", "0", "99999999999"])).map(
        lambda t: f"{t[0]}-{t[1]}/{t[2]}"
    ),
)
entries = st.lists(items, min_size=1, max_size=3).map(",".join)
expressions = st.lists(st.one_of(st.just("*"), entries), min_size=4, max_size=6).flatmap(
    lambda parts: st.sampled_from([" ", "  ", "\t"]).map(lambda gap: gap.join(parts))
)


def number(word: str, low: int, high: int, names: list[str]) -> int | None:
    if word.upper() in names:
        return names.index(word.upper()) + low
    if not re.fullmatch(r"[0-9]{1,4}", word, re.ASCII) or not low <= int(word) <= high:
        return None
    return int(word)


def item(text: str, low: int, high: int, names: list[str]) -> set[int] | None:
    before, slash, after = text.partition("/")
    first, dash, last = before.partition("-")
    start = low if before == "*" else number(first, low, high, names)
    end = high if before == "*" else number(last, low, high, names) if dash else start
    if dash and last.upper() == "SUN" and names is DAYS and start is not None and first.upper() != "SUN" and start > 0:
        end = 7
    if start is None or end is None or start > end:
        return None
    step = 1
    if slash:
        if not dash and before != "*":
            return None
        if not re.fullmatch(r"[0-9]{1,4}", after, re.ASCII) or not 1 <= int(after) <= high:
            return None
        step = int(after)
    return set(range(start, end + 1, step))


def read(text: str) -> list[set[int]] | None:
    """Return the numbers of the five fields, or None for what is no expression."""
    parts = re.split(r"[ \t]+", text.strip(" \t"))
    if len(parts) != 5:
        return None
    fields = []
    for part, (low, high, names) in zip(parts, FIELDS, strict=True):
        numbers: set[int] = set()
        for each in part.split(","):
            found = item(each, low, high, names)
            if found is None:
                return None
            numbers |= found
        fields.append(numbers)
    fields[4] = {day % 7 for day in fields[4]}
    return fields


@examples(250)
@given(text=expressions)
def test_two_readers_of_an_expression_agree(conn: psycopg.Connection, text: str) -> None:
    ask = "select minutes, hours, days, months, weekdays from menzil.cron_parse(%s)"
    expected = read(text)
    if refused := refusal(conn, ask, text):
        assert refused.diag.message_hint
        assert expected is None, text
        return
    found = conn.execute(ask, [text]).fetchone() or ()
    assert [set(numbers) for numbers in found] == expected


@examples(60)
@given(
    text=st.sampled_from(["* * * * *", "30 2 * * *", "0 0 29 2 *", "*/7 */5 * * MON", "0 12 31 12 *", "59 23 * * *"]),
    zone=st.sampled_from(
        ["UTC", "Europe/Istanbul", "America/New_York", "Pacific/Apia", "Asia/Kathmandu", "Africa/Monrovia"]
    ),
    after=st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 30)),
)
def test_the_next_slot_is_later_and_on_time_in_every_century(
    conn: psycopg.Connection, text: str, zone: str, after: datetime
) -> None:
    after = after.replace(tzinfo=UTC)
    (found,) = conn.execute("select menzil.cron_next(%s, %s, %s)", [text, zone, after]).fetchone() or ()
    if found is None:  # only where the calendar ends
        assert after > datetime(9989, 1, 1, tzinfo=UTC)
        return
    assert timedelta(0) < found - after <= timedelta(days=366 * 8 + 1)
    (wall,) = conn.execute("select %s::timestamptz at time zone %s", [found, zone]).fetchone() or ()
    fields = read(text)
    assert fields is not None
    minutes, hours, days, months, weekdays = fields
    assert wall.minute in minutes
    assert wall.hour in hours
    assert wall.day in days
    assert wall.month in months
    assert wall.isoweekday() % 7 in weekdays
