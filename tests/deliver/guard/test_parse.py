"""A URL is read once, strictly: whoever else reads it sees the same host, or it is refused."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from yarl import URL

from menzil.deliver.guard import Guard, RefusedUrlError, Target


def read(url: str) -> Target | None:
    try:
        return Guard(allow_internal=True).parse(url)
    except RefusedUrlError:
        return None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com", ("https", "example.com", 443, "example.com", "/")),
        ("HTTPS://EXAMPLE.com/A?b=C", ("https", "example.com", 443, "example.com", "/A?b=C")),
        ("https://example.com?q=1", ("https", "example.com", 443, "example.com", "/?q=1")),
        ("http://example.com:80/", ("http", "example.com", 80, "example.com", "/")),
        ("https://example.com:80/", ("https", "example.com", 80, "example.com:80", "/")),
        ("https://example.com:0443/", ("https", "example.com", 443, "example.com", "/")),
        ("http://a_b.c-d:65535/x%20y", ("http", "a_b.c-d", 65535, "a_b.c-d:65535", "/x%20y")),
        ("http://10.0.0.1:8080/", ("http", "10.0.0.1", 8080, "10.0.0.1:8080", "/")),
        ("https://[2001:DB8:0::1]:8443/", ("https", "2001:db8::1", 8443, "[2001:db8::1]:8443", "/")),
        ("https://xn--bcher-kva.example/", ("https", "xn--bcher-kva.example", 443, "xn--bcher-kva.example", "/")),
        ("https://xn--strae-oqa.example/", ("https", "xn--strae-oqa.example", 443, "xn--strae-oqa.example", "/")),
        ("https://x/a@b:c/../d", ("https", "x", 443, "x", "/a@b:c/../d")),
    ],
)
def test_good_urls_have_these_parts(url: str, expected: tuple[object, ...]) -> None:
    found = Guard().parse(url)
    assert (found.scheme, found.host, found.port, found.authority, found.path_and_query) == expected


def test_plain_http_is_refused_unless_the_setting_allows_it_and_a_proxy_may_have_it() -> None:
    guard = Guard(allow_http=False)
    with pytest.raises(RefusedUrlError, match="http_allow_http"):
        guard.parse("http://example.com/")
    assert guard.parse("http://proxy:3128", proxy=True).port == 3128
    with pytest.raises(RefusedUrlError, match="http_allow_http"):
        guard.parse("http://proxy:3128")
    assert guard.parse("https://example.com/").scheme == "https"


def test_neither_a_refusal_nor_a_repr_repeats_the_path_which_may_hold_a_token() -> None:
    assert "canary" not in repr(Guard().parse("https://example.com/canary?canary"))
    with pytest.raises(RefusedUrlError) as refusal:
        Guard().parse("https://canary@example.com/canary")
    assert "canary" not in str(refusal.value)


_PIECES = [
    *("http://", "https://", "HTTP://", "http:/", "//", "ftp://", "http:\\\\", "javascript:"),
    *("good.example", "127.0.0.1", "127.1", "0x7f000001", "2130706433", "[::1]", "[::ffff:7f00:1]"),
    *("@", ":", "#", "?", "/", "\\", "%", "%40", "%2f", "%00", ".", "..", " ", "\t", "\r\n", "\0", ";", "&", "=", "|"),
    *("80", "443", "0", "65536", "a", "xn--", "bcher-kva", "ｅ", "。", "１", "ß", "\u00ad", "\u200b", "\u2044"),
    *("localhost", "[", "]", "user", "x" * 64),
]  # fmt: skip
urls = st.one_of(
    st.lists(st.sampled_from(_PIECES), min_size=1, max_size=10).map("".join),
    st.tuples(st.sampled_from(["http://", "https://"]), st.lists(st.sampled_from(_PIECES), max_size=8)).map(
        lambda parts: parts[0] + "".join(parts[1])
    ),
    st.text(max_size=40).map(lambda text: "http://" + text),
    st.from_regex(r"https?://[a-z0-9.:@\[\]%#?/\\-]{1,40}", fullmatch=True),
)


@settings(max_examples=3000, deadline=None)
@given(urls)
@example("http://good.example\\@127.0.0.1/")
@example("http://good.example#@127.0.0.1/")
@example("http://127.0.0.1?@good.example/")
@example("http://[::ffff:127.0.0.1]/")
@example("http://ﬁ.example/")
def test_no_other_reader_would_connect_elsewhere(url: str) -> None:
    found = read(url)
    if found is None:
        return
    plain = urlsplit(url)
    assert plain.username is None
    assert (plain.scheme, plain.port or found.port) == (found.scheme, found.port)
    assert _same_host(plain.hostname, found.host)
    other = URL(url)
    assert (other.scheme, other.port, other.user) == (found.scheme, found.port, None)
    assert _same_host(other.raw_host, found.host)
    # What is sent, put together again, is read as the same destination.
    assert read(f"{found.scheme}://{found.authority}{found.path_and_query}") == found
    assert found.path_and_query.isascii()
    assert found.path_and_query.isprintable()
    assert " " not in found.path_and_query


def _same_host(theirs: str | None, ours: str) -> bool:
    if theirs is not None and ":" in ours:
        return ip_address(theirs) == ip_address(ours)
    return theirs == ours
