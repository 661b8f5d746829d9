"""The database and the worker read URLs alike: what one accepts the other does not refuse for its spelling."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from menzil.deliver.guard import Guard, RefusedUrlError
from tests.conftest import database
from tests.deliver.guard.table import PUNYCODE, ROWS
from tests.deliver.guard.test_parse import urls

#: SQL cannot decode punycode: the one reason for which the worker refuses what the database took.
DOCUMENTED = PUNYCODE

hosts = st.one_of(
    st.from_regex(r"[0-9a-fx.]{1,20}", fullmatch=True),
    st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,3}){1,4}\.?", fullmatch=True),
    st.from_regex(r"\[[0-9a-f:.]{1,30}\]", fullmatch=True),
    st.ip_addresses(v=6).map(lambda address: f"[{address.exploded}]"),
    st.ip_addresses(v=4).map(lambda address: f"[::{address}]"),
    st.from_regex(r"[a-z0-9_-]{1,5}(\.[a-z0-9_-]{0,5}){0,3}", fullmatch=True),
)
ports = st.sampled_from(["", ":1", ":0", ":080", ":65535", ":65536", ":", ":99999", ":000001"])


@pytest.fixture(scope="module")
def conn(server: object, _installed: str) -> Iterator[psycopg.Connection]:
    with database(server, "agreement", _installed) as dsn, psycopg.connect(dsn, autocommit=True) as connection:  # type: ignore[arg-type]
        yield connection


def sql_accepts(conn: psycopg.Connection, url: str) -> bool:
    if "\0" in url or any("\ud800" <= c <= "\udfff" for c in url):
        return False  # no text of a database
    try:
        conn.execute("select menzil.validate_endpoint_config('http', %s)", [Jsonb({"url": url})])
    except psycopg.errors.InvalidParameterValue:
        return False
    return True


def refusal(url: str) -> str | None:
    try:
        Guard().parse(url)
    except RefusedUrlError as error:
        return error.reason
    return None


def agree(conn: psycopg.Connection, url: str) -> None:
    reason = refusal(url)
    if sql_accepts(conn, url):
        assert reason is None or DOCUMENTED in reason, url
    else:
        assert reason is not None, url


def test_they_agree_on_the_table(conn: psycopg.Connection) -> None:
    for row in ROWS:
        agree(conn, row.url.replace("PORT", "8080"))


@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.one_of(urls, st.tuples(hosts, ports).map(lambda parts: f"http://{parts[0]}{parts[1]}/")))
def test_they_agree_on_anything(conn: psycopg.Connection, url: str) -> None:
    agree(conn, url)


def test_they_agree_on_plain_http(conn: psycopg.Connection) -> None:
    conn.execute("select menzil.set_setting('http_allow_http', 'off')")
    try:
        assert not sql_accepts(conn, "http://example.com")
        assert sql_accepts(conn, "https://example.com")
    finally:
        conn.execute("select menzil.set_setting('http_allow_http', 'on')")
    with pytest.raises(RefusedUrlError):
        Guard(allow_http=False).parse("http://example.com")


def test_the_guard_understands_the_settings_as_the_database_shows_them(conn: psycopg.Connection) -> None:
    for name, value in [
        ("http_allow_internal_urls", "on"),
        ("http_allowed_networks", " 169.254.7,::ffff:0:0/96 fe80::7"),
    ]:
        conn.execute("select menzil.set_setting(%s, %s)", [name, value])
    rows = conn.execute("select name, value from menzil.settings where name like 'http%'").fetchall()
    shown: dict[str, str] = dict(rows)
    for name in ("http_allow_internal_urls", "http_allowed_networks"):
        conn.execute("select menzil.set_setting(%s, default_value) from menzil.settings where name = %s", [name, name])
    guard = Guard.from_settings(shown)
    assert guard.judge("127.0.0.1") is None
    assert guard.judge("169.254.7.7") is None
    assert guard.judge("169.254.8.7")
    assert guard.judge("fe80::7") is None
    assert guard.judge("fe80::8")
