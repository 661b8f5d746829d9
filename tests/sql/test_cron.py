"""Cron expressions against an oracle that knows no shortcuts: zoneinfo, asked minute by minute.

Random fields are drawn together with the numbers they stand for, so the oracle never parses an expression.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MINUTE = timedelta(minutes=1)
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
# Half an hour, three hours, a whole day; both hemispheres; Ramadan; offsets with minutes; no change at all.
ZONES = [
    "Europe/Istanbul",
    "America/New_York",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Asia/Gaza",
    "Europe/London",
    "Pacific/Chatham",
]
database_tests = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@dataclass(frozen=True)
class Field:
    text: str
    numbers: frozenset[int]

    @property
    def any(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True)
class Cron:
    minute: Field
    hour: Field
    day: Field
    month: Field
    weekday: Field

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.minute, self.hour, self.day, self.month, self.weekday))

    def on_day(self, at: datetime) -> bool:
        in_days = at.day in self.day.numbers
        in_weekdays = at.isoweekday() % 7 in self.weekday.numbers
        both = self.day.any or self.weekday.any
        return at.month in self.month.numbers and ((in_days and in_weekdays) if both else (in_days or in_weekdays))

    def shows(self, wall: datetime) -> bool:
        return wall.minute in self.minute.numbers and wall.hour in self.hour.numbers and self.on_day(wall)


@st.composite
def fields(draw: st.DrawFn, low: int, high: int, names: list[str] | None = None, top: int | None = None) -> Field:
    """A list of one to three items, each with the numbers it stands for; `top` keeps numbers and ranges low."""
    texts: list[str] = []
    numbers: set[int] = set()
    for _ in range(draw(st.integers(1, 3))):
        first, last = sorted((draw(st.integers(low, top or high)), draw(st.integers(low, top or high))))
        step = draw(st.integers(1, high))
        kind = draw(st.sampled_from(["number", "name", "range", "range/step", "*", "*/step"]))
        if kind == "name" and names:
            texts.append(draw(st.sampled_from([str.upper, str.lower, str.title]))(names[(first - low) % len(names)]))
            numbers.add(low + (first - low) % len(names))
        elif kind in ("number", "name"):
            texts.append(str(first))
            numbers.add(first)
        else:
            span = range(low, high + 1) if kind.startswith("*") else range(first, last + 1)
            texts.append(("*" if kind.startswith("*") else f"{first}-{last}") + (f"/{step}" if "/" in kind else ""))
            numbers.update(span[:: step if "/" in kind else 1])
    return Field(",".join(texts), frozenset(numbers))


def weekdays() -> st.SearchStrategy[Field]:
    return fields(0, 7, WEEKDAYS).map(lambda field: Field(field.text, frozenset(n % 7 for n in field.numbers)))


ANY = st.just(Field("*", frozenset(range(60))))
MIDNIGHT = st.just(Field("0", frozenset({0})))
# Days are mostly free: the interesting places are the hours around a change of the clock.
crons = st.builds(
    Cron,
    minute=fields(0, 59),
    hour=st.one_of(fields(0, 23), fields(0, 23, top=4)),
    day=st.one_of(ANY, fields(1, 31)),
    month=st.one_of(ANY, fields(1, 12, MONTHS)),
    weekday=st.one_of(ANY, weekdays()),
)


@cache
def changes(zone: str) -> list[datetime]:
    """Hours in which the clocks of a zone change, from 2009 to 2023; a quiet one when they never do."""
    hours = [datetime(2009, 1, 1, tzinfo=UTC) + timedelta(hours=6 * n) for n in range(4 * 365 * 14)]
    offsets = [hour.astimezone(ZoneInfo(zone)).utcoffset() for hour in hours]
    return [hours[n] for n in range(1, len(hours)) if offsets[n] != offsets[n - 1]] or [
        datetime(2020, 2, 28, 12, tzinfo=UTC)
    ]


def oracle(cron: Cron, zone: str, after: datetime, until: datetime) -> list[datetime]:
    """Every slot in (after, until], found by looking at the wall at every minute."""
    start = after.replace(second=0, microsecond=0) - timedelta(days=2)
    minutes = [start + n * MINUTE for n in range(int((until - start) / MINUTE) + 1)]
    walls = [minute.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for minute in minutes]
    if cron.minute.any or cron.hour.any:
        found = {minute for minute, wall in zip(minutes, walls, strict=True) if cron.shows(wall)}
    else:
        found = set()
        highest = walls[0]
        for minute, wall in zip(minutes, walls, strict=True):
            # New on the wall: this minute, and whatever was jumped over to get here.
            while highest < wall:
                highest += MINUTE
                if cron.shows(highest):
                    found.add(minute)
    return sorted(minute for minute in found if after < minute <= until)


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        yield connection


def slots(
    conn: psycopg.Connection, cron: str, zone: str, after: datetime, until: datetime, limit: int
) -> list[datetime]:
    rows = conn.execute(
        """with recursive slot(at) as (
             select menzil.cron_next(%(cron)s, %(zone)s, %(after)s)
             union all select menzil.cron_next(%(cron)s, %(zone)s, s.at) from slot s where s.at <= %(until)s
           ) select at from slot where at <= %(until)s limit %(limit)s""",
        {"cron": cron, "zone": zone, "after": after, "until": until, "limit": limit},
    )
    return [at.astimezone(UTC) for (at,) in rows]


@settings(database_tests, max_examples=80)
@given(data=st.data(), cron=crons, zone=st.sampled_from(ZONES))
def test_slots_around_a_change_of_the_clock_are_those_the_wall_shows(
    conn: psycopg.Connection, data, cron, zone
) -> None:
    change = data.draw(st.sampled_from(changes(zone)))
    after = change + timedelta(
        minutes=data.draw(st.integers(-33 * 60, 3 * 60)), seconds=data.draw(st.sampled_from([0, 0, 1, 59]))
    )
    until = after + timedelta(days=2)
    expected = oracle(cron, zone, after, until)
    assert slots(conn, cron.text, zone, after, until, 80) == expected[:80]


@settings(database_tests, max_examples=60)
@given(
    cron=st.builds(Cron, *[st.just(Field("0", frozenset({0})))] * 2, fields(1, 31), fields(1, 12, MONTHS), weekdays())
)
def test_rare_dates_are_found_years_ahead(conn: psycopg.Connection, cron) -> None:
    start = datetime(2019, 3, 1, tzinfo=UTC)
    days = (start + timedelta(days=n) for n in range(1, 41 * 365))
    expected = next((day for day in days if cron.on_day(day)), None)
    (found,) = conn.execute("select menzil.cron_next(%s, 'UTC', %s)", [cron.text, start]).fetchone()
    assert found == expected


KNOWN = [
    # New York skips 02:00 to 03:00 on 10 March 2024 and shows 01:00 to 02:00 twice on 3 November.
    ("30 2 * * *", "America/New_York", "2024-03-09T12:00Z", ["2024-03-10T07:00Z", "2024-03-11T06:30Z"]),
    ("0,30 2 * * *", "America/New_York", "2024-03-09T12:00Z", ["2024-03-10T07:00Z", "2024-03-11T06:00Z"]),
    ("30 1 * * *", "America/New_York", "2024-11-03T04:00Z", ["2024-11-03T05:30Z", "2024-11-04T06:30Z"]),
    (
        "30 * * * *",
        "America/New_York",
        "2024-11-03T05:00Z",
        ["2024-11-03T05:30Z", "2024-11-03T06:30Z", "2024-11-03T07:30Z"],
    ),
    ("*/30 2 * * *", "America/New_York", "2024-03-10T00:00Z", ["2024-03-11T06:00Z", "2024-03-11T06:30Z"]),
    (
        "*/20 1 3 11 *",
        "America/New_York",
        "2024-11-03T05:40Z",
        ["2024-11-03T06:00Z", "2024-11-03T06:20Z", "2024-11-03T06:40Z", "2025-11-03T06:00Z"],
    ),
    # Samoa left out 30 December 2011.
    ("0 9 * * *", "Pacific/Apia", "2011-12-29T20:00Z", ["2011-12-30T10:00Z", "2011-12-30T19:00Z"]),
    ("* * 30 12 *", "Pacific/Apia", "2011-12-29T20:00Z", ["2012-12-29T10:00Z"]),
    # The day fields: either one when both are restricted, both when one begins with a star.
    (
        "0 0 13 * FRI",
        "UTC",
        "2024-09-10T00:00Z",
        [
            "2024-09-13T00:00Z",
            "2024-09-20T00:00Z",
            "2024-09-27T00:00Z",
            "2024-10-04T00:00Z",
            "2024-10-11T00:00Z",
            "2024-10-13T00:00Z",
        ],
    ),
    ("0 0 */2 * MON", "UTC", "2024-09-01T00:00Z", ["2024-09-09T00:00Z", "2024-09-23T00:00Z"]),
    ("0 0 * * 7", "UTC", "2024-09-01T00:00Z", ["2024-09-08T00:00Z"]),
    (
        "0 0 * * FRI-SUN",
        "UTC",
        "2024-09-02T00:00Z",
        ["2024-09-06T00:00Z", "2024-09-07T00:00Z", "2024-09-08T00:00Z", "2024-09-13T00:00Z"],
    ),
    ("0 0 29 2 *", "UTC", "2096-03-01T00:00Z", ["2104-02-29T00:00Z"]),
]


def test_known_dates(conn: psycopg.Connection) -> None:
    for cron, zone, after, expected in KNOWN:
        found = slots(conn, cron, zone, datetime.fromisoformat(after), datetime(2200, 1, 1, tzinfo=UTC), len(expected))
        assert found == [datetime.fromisoformat(slot) for slot in expected], cron


def test_no_slot_depends_on_the_time_zone_of_the_session(conn: psycopg.Connection) -> None:
    query = "select menzil.cron_next('30 2 * * *', 'Europe/Berlin', '2024-03-30T23:00Z')"
    (here,) = conn.execute(query).fetchone()
    conn.execute("set timezone = 'Australia/Lord_Howe'")
    (there,) = conn.execute(query).fetchone()
    assert here == there == datetime(2024, 3, 31, 1, tzinfo=UTC)


def test_a_date_that_never_comes_has_no_next_slot(conn: psycopg.Connection) -> None:
    for cron in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 FEB *", "0 0 30-31 2 */3"]:
        assert conn.execute("select menzil.cron_next(%s, 'UTC', now())", [cron]).fetchone() == (None,), cron


def test_macros_are_short_for_five_fields(conn: psycopg.Connection) -> None:
    macros = {
        "@hourly": "0 * * * *",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@weekly": "0 0 * * 0",
        "@monthly": "0 0 1 * *",
        "@yearly": "0 0 1 1 *",
        " @Annually ": "0 0 1 1 *",
        "\t5  4\t* * *  ": "5 4 * * *",
    }
    for macro, cron in macros.items():
        parsed = "select p::text from menzil.cron_parse(%s) p"
        assert conn.execute(parsed, [macro]).fetchone() == conn.execute(parsed, [cron]).fetchone(), macro


def test_a_wrong_field_is_named(conn: psycopg.Connection) -> None:
    wrong = {
        "minute": ["60", "-1", "*/0", "*/60", "5/10", "1,,2", "5-1", "1-2-3", "1.5", "**", "*/"],
        "hour": ["24", "MON", "1-x", "x", "3-SUN"],
        "day of month": ["0", "32", "L", "?", "15W"],
        "month": ["0", "13", "JANUARY", "MON", "3-SUN"],
        "weekday": ["8", "MON#2", "FRI-MON", "99999999999", "JAN"],
    }
    for place, (field, texts) in enumerate(wrong.items()):
        for text in texts:
            cron = " ".join([*["*"] * place, text, *["*"] * (4 - place)])
            with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"in the {field} field") as refusal:
                conn.execute("select menzil.cron_parse(%s)", [cron])
            assert refusal.value.diag.message_hint, cron


def test_anything_else_than_five_fields_is_refused(conn: psycopg.Connection) -> None:
    for cron in ["", " ", "* * * *", "* * * * * *", "@reboot", "*\n* * * *", "* " * 300]:
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            conn.execute("select menzil.cron_parse(%s)", [cron])


def test_only_real_time_zones_are_accepted(conn: psycopg.Connection) -> None:
    for zone in ["Europe/Stambul", "Europ/Istanbul3", "FOO3", "BRST", "", "../../etc/passwd", "Europe/Istanbul; drop"]:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="no time zone"):
            conn.execute("select menzil.cron_next('* * * * *', %s, now())", [zone])
    for zone in ["UTC", "Etc/GMT+5", "EST5EDT", "America/Port-au-Prince", "america/argentina/buenos_aires"]:
        assert conn.execute("select menzil.cron_next('* * * * *', %s, now()) > now()", [zone]).fetchone() == (True,), (
            zone
        )


def test_null_and_infinity_are_refused(conn: psycopg.Connection) -> None:
    for arguments in ["null, 'UTC', now()", "'* * * * *', null, now()", "'* * * * *', 'UTC', null"]:
        with pytest.raises(psycopg.errors.NullValueNotAllowed):
            conn.execute(f"select menzil.cron_next({arguments})")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute("select menzil.cron_next('* * * * *', 'UTC', 'infinity')")


def test_a_time_outside_the_years_1_to_9999_is_refused_and_no_slot_lies_there(conn: psycopg.Connection) -> None:
    for after in ["0044-03-15 BC", "10000-01-01", "294276-12-31"]:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="years 1 to 9999"):
            conn.execute("select menzil.cron_next('@daily', 'UTC', %s::timestamptz)", [after])
    last = "select menzil.cron_next('@monthly', 'UTC', '9999-12-15 00:00+00')"
    assert conn.execute(last).fetchone() == (None,)
