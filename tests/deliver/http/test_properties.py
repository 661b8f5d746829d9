"""Texts from strangers: whatever they are, the result keeps its promise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.excerpt import Hider, line, safe
from menzil.deliver.http.headers import FORBIDDEN, checked, rendered
from menzil.deliver.http.retry_after import retry_after
from menzil.deliver.http.suffix import with_suffix

NOW = datetime(2026, 11, 16, 1, 0, tzinfo=UTC)


@settings(deadline=None)  # the machine may be busy
@given(st.text() | st.from_regex(r"[0-9, :A-Za-z+-]{0,40}", fullmatch=True), st.none() | st.text())
@example("Mon, 16 Nov 99999 01:00:00 GMT", None)
@example("Mon, 16 Nov 2026 01:00:00 +9999", None)
@example("9" * 5000, None)
@example("٣", None)
def test_any_retry_after_is_seconds_of_a_day_or_nothing(value: str, date: str | None) -> None:
    seconds = retry_after(value, date, NOW)
    assert seconds is None or (isinstance(seconds, float) and 0 < seconds <= 86_400)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(min_value=-(10**30), max_value=10**30))
def test_retry_after_in_seconds_is_taken_at_its_word(seconds: int) -> None:
    assert retry_after(str(seconds), None, NOW) == (min(seconds, 86_400) if seconds > 0 else None)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(min_value=-200_000, max_value=200_000), st.integers(min_value=-1000, max_value=1000))
def test_retry_after_as_a_date_is_measured_by_the_clock_that_wrote_it(ahead: int, skew: int) -> None:
    theirs = NOW + timedelta(seconds=skew)
    until = format_datetime(theirs + timedelta(seconds=ahead), usegmt=True)
    expected = min(ahead, 86_400) if ahead > 0 else None  # a time that has passed asks for nothing
    assert retry_after(until, format_datetime(theirs, usegmt=True), NOW) == expected
    assert retry_after(until, "nonsense", theirs) == expected


@pytest.mark.parametrize(
    "text", ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 GMT"]
)
def test_all_three_forms_of_a_date_are_read(text: str) -> None:
    assert retry_after(text, "Sun, 06 Nov 1994 08:49:00 GMT", NOW) == 37.0


@pytest.mark.parametrize("text", ["", "soon", "1.5", "0x10", "1e3", "5 seconds", "1,2"])
def test_garbage_in_retry_after_is_ignored(text: str) -> None:
    assert retry_after(text, None, NOW) is None


@settings(deadline=None)  # the machine may be busy
@given(st.dictionaries(st.text(max_size=20) | st.sampled_from(sorted(FORBIDDEN)), st.text(max_size=40) | st.integers()))
def test_headers_that_pass_cannot_add_a_line(headers: dict[str, str]) -> None:
    try:
        passed = checked(headers, "message")
    except RefusedError:
        return
    lines = rendered(passed).encode().split(b"\r\n")
    assert len(lines) == len(passed) + 1
    assert not FORBIDDEN & set(passed)
    for text in lines[:-1]:
        assert not any(byte < 0x20 or byte == 0x7F for byte in text)
        assert b": " in text


@settings(deadline=None)  # the machine may be busy
@given(
    st.text(alphabet="./\\%2eE5cCfF;?#@:a b\x00ü") | st.text(),
    st.sampled_from(["/v1/hook", "/", "/a/?q=1", "/a/b?x=/../"]),
)
@example("%2e%2e/x", "/v1/hook")
@example("%252e%252e/x", "/v1/hook")
@example("..;/x", "/v1/hook")
@example("//evil.example/x", "/v1/hook")
@example("a%2f..%2f..", "/v1/hook")
def test_a_suffix_that_passes_stays_below_the_path(suffix: str, base: str) -> None:
    try:
        path = with_suffix(base, suffix)
    except RefusedError:
        return
    assert path.isascii()
    assert path.isprintable()
    assert " " not in path
    before, _, query = base.partition("?")
    parts = urlsplit("http://host" + path)
    assert (parts.netloc, parts.query) == ("host", query)
    below = before.removesuffix("/") + "/"
    assert parts.path.startswith(below)
    plain = parts.path.removeprefix(below)
    for _ in range(4):
        assert not plain.startswith("/")
        segments = plain.replace("\\", "/").split("/")
        assert not {".", ".."} & {segment.partition(";")[0] for segment in segments}
        plain = unquote(plain)
    assert with_suffix(base, parts.path.removeprefix(below) or "x")  # what was made is accepted again


@pytest.mark.parametrize(
    ("suffix", "path"),
    [("a/b", "/v1/a/b"), ("/a/", "/v1/a/"), ("ü", "/v1/%C3%BC"), ("%c3%bc", "/v1/%C3%BC"), ("a%20b", "/v1/a%20b"),
     ("a;b=1,2", "/v1/a;b=1,2"), ("...", "/v1/..."), ("%3Fx", "/v1/%3Fx"), ("100%25", "/v1/100%25")],
)  # fmt: skip
def test_an_honest_suffix_is_spelled_in_one_way(suffix: str, path: str) -> None:
    assert with_suffix("/v1", suffix) == path


@pytest.mark.parametrize(
    "suffix",
    ["..", "../x", "a/../b", "./x", "%2e%2e/x", "%2E./x", "a/%2e%2e", "%252e%252e/", "..;x/", "a%2fb", "a\\b", "%5c",
     "a?b", "a#b", "a%", "a%zz", "a\nb", "%0d%0a", "%00", "a//b", "//evil", "", "x" * 2000, None, 5, ["a"], "\ud800"],
)  # fmt: skip
def test_a_suffix_that_leaves_the_path_is_refused(suffix: object) -> None:
    with pytest.raises(RefusedError):
        with_suffix("/v1", suffix)


@settings(deadline=None)  # the machine may be busy
@given(st.text())
def test_what_is_stored_has_no_control_characters(text: str) -> None:
    stored = safe(text, Hider(()), 2000)
    stored.encode()
    assert not any(ord(char) < 32 and char not in "\t\n" for char in stored)
    assert line(stored).isprintable() or any(not char.isprintable() for char in stored)
    assert "\n" not in line(stored)
    assert len(line(stored)) <= 200
