"""The search line: what people type is understood, or refused with the nearest word."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menzil.model.errors import UsageError
from menzil.ops.looking_messages import STATUSES
from menzil.watch.search import QUALIFIERS, Search, parse, suggestions

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CORR = UUID("6f1c1f7e-0b5e-4b0c-9d3a-2f6f0c3e8a11")


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", Search()),
        ("   ", Search()),
        ("channel:billing", Search(channel="billing")),
        ("Channel:billing", Search(channel="billing")),
        ('channel:"two words"', Search(channel="two words")),
        ('error:"say \\"no\\""', Search(error='say "no"')),
        ('error:"a\\\\b"', Search(error="a\\b")),
        ("channel:a:b", Search(channel="a:b")),
        ("status:failed", Search(status=("failed",))),
        ("status:failed,expired,failed", Search(status=("failed", "expired"))),
        ("status:dead", Search(status=("failed",))),
        ("is:waiting", Search(status=("pending",))),
        ("key:k idem:i", Search(key="k", idem="i")),
        (f"corr:{CORR}", Search(corr=CORR)),
        (str(CORR), Search(corr=CORR)),
        (CORR.hex.upper(), Search(corr=CORR)),
        ("42", Search(id=(42,))),
        ("id:7,8,7", Search(id=(7, 8))),
        ("before:100", Search(before=100)),
        ("since:2h", Search(since=timedelta(hours=-2))),
        ("since:-2h", Search(since=timedelta(hours=-2))),
        ('since:"2h ago"', Search(since=timedelta(hours=-2))),
        ("since:90s until:now", Search(since=timedelta(seconds=-90), until=timedelta())),
        ("since:2026-01-31", Search(since=datetime(2026, 1, 31, tzinfo=UTC))),
        ("until:2026-01-31T12:00+03:00", Search(until=datetime(2026, 1, 31, 9, tzinfo=UTC))),
        ("endpoint:x ordering_key:k last_error:e", Search(channel="x", key="k", error="e")),
        ("  channel:a\t status:failed \n", Search(channel="a", status=("failed",))),
    ],
)
def test_a_line_asks_for_what_it_says(line: str, found: Search) -> None:
    assert parse(line) == found


@pytest.mark.parametrize(
    ("line", "sentence", "hint"),
    [
        ("chanel:billing", "no qualifier chanel:", "Did you mean channel:?"),
        ("stauts:failed", "no qualifier stauts:", "Did you mean status:?"),
        ("correlation-id:x", "no qualifier", "Did you mean corr:?"),
        ("zzz:1", "no qualifier zzz:", "Qualifiers are channel:"),
        ("https://x.org", "no qualifier https:", "Qualifiers are"),
        ("status:faild", "'faild' is not a status", "did you mean failed?"),
        ("status:xyz", "'xyz' is not a status", "use one of pending"),
        ("billing", "'billing' has no qualifier", "channel:billing"),
        ('"two words"', "has no qualifier", 'error:"two words"'),
        ("channel:", "channel: has no value", "of this channel"),
        ('key:""', "key: has no value", "ordering key"),
        ("channel:a channel:b", "given twice", "once"),
        ("channel:a endpoint:b", "given twice", "once"),
        ('error:"open', "not closed", 'error:"two words"'),
        ("id:x", "'x' is not an id", "id:42"),
        ("id:-1", "is not an id", "id:42"),
        ("before:1e3", "is not an id", "whole"),
        (f"id:{2**63}", "is not an id", "whole"),
        (f"id:{','.join(map(str, range(101)))}", "101 ids are too many", "100"),
        ("corr:123", "not a correlation id", "32 hexadecimal"),
        ("since:yesterday", "is not a valid time", "since:2h"),
        ("since:5", "is not a valid time", "since:2h"),
        ("since:99999999999999w", "is not a valid time", "since:2h"),
        (":x", "", ""),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_hint(line: str, sentence: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse(line)
    assert sentence in refused.value.message
    assert refused.value.hint is not None
    assert hint in refused.value.hint


def test_distances_are_measured_from_the_clock_that_is_given() -> None:
    found = parse("since:2h until:2026-02-01").at(NOW)
    assert found.since == NOW - timedelta(hours=2)
    assert found.until == datetime(2026, 2, 1, tzinfo=UTC)
    with pytest.raises(UsageError, match="years 1 to 9999"):
        parse("since:500000w").at(NOW)


def test_an_empty_line_asks_for_nothing() -> None:
    assert not parse("")
    assert parse("channel:x")


def test_suggestions_complete_the_last_word() -> None:
    assert suggestions("ch") == ["channel:"]
    assert suggestions("channel:a st") == ["channel:a status:"]
    assert suggestions("status:p") == ["status:pending", "status:processing"]
    assert suggestions("channel:b", ["billing", "mail", "b b"]) == ["channel:billing", 'channel:"b b"']
    assert [one.rstrip(":") for one in suggestions("")] == list(QUALIFIERS)


TEXTS = st.text(min_size=1).filter(str.strip)
SEARCHES = st.builds(
    Search,
    channel=st.none() | TEXTS,
    status=st.none() | st.lists(st.sampled_from(STATUSES), min_size=1, unique=True).map(tuple),
    key=st.none() | TEXTS,
    idem=st.none() | TEXTS,
    corr=st.none() | st.uuids(),
    id=st.none() | st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=5, unique=True).map(tuple),
    before=st.none() | st.integers(0, 2**63 - 1),
    since=st.none() | st.datetimes(timezones=st.just(UTC)),
    until=st.none() | st.integers(1, 10**5).map(lambda hours: timedelta(seconds=-hours)),
    error=st.none() | TEXTS,
)


@given(SEARCHES)
def test_a_search_written_as_a_line_is_read_as_the_same_search(search: Search) -> None:
    assert parse(search.line()) == search


@given(st.text(alphabet="chanel:status\"' \\,id0123", max_size=40) | st.text())
def test_any_line_is_read_or_refused(line: str) -> None:
    try:
        found = parse(line)
    except UsageError as refused:
        hint = refused.hint
    else:
        hint = f"read as {found.line()}"
    assert hint
