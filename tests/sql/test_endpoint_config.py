"""The config of an endpoint: every key is checked, at every level, and the refusal names its path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"
URL = "https://example.com/hook"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN EC PRIVATE KEY-----\r\nMII\n"
BASIC = {"type": "basic", "username": "ann", "password": ""}
OAUTH2 = {"type": "oauth2", "token_url": URL, "client_id": "c", "client_secret": "s"}
SIGV4 = {"type": "sigv4", "access_key_id": "a", "secret_access_key": "s", "region": "eu-central-1", "service": "lambda"}


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        yield connection


def validate(conn: psycopg.Connection, config: Any) -> None:
    assert conn.execute("select menzil.validate_endpoint_config('http', %s)", [Jsonb(config)]).fetchone() == (True,)


def refused(conn: psycopg.Connection, config: Any, path: str = "") -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        validate(conn, config)
    assert path in refusal.value.diag.message_primary
    assert refusal.value.diag.message_hint, config


def test_good_configs_are_valid(conn: psycopg.Connection) -> None:
    for keys in [
        {},
        {"method": "PUT", "timeout_seconds": 1, "connect_timeout_seconds": 0.5, "success_statuses": [200, 409]},
        {"headers": {"X-A": "b", "Content-Type": "application/json", "X-Empty": ""}},
        {"auth": BASIC},
        {"auth": {"type": "bearer", "token": "t"}},
        {"auth": OAUTH2},
        {"auth": {**OAUTH2, "scope": "a b", "audience": "x", "client_auth": "body"}},
        {"auth": {**SIGV4, "session_token": "t"}},
        {"signing": {"secret": SECRET}},
        {"signing": {"secrets": [SECRET, SECRET]}},
        {"cloudevents": {"mode": "structured", "source": "/orders", "type": "order.made"}},
        {"rate_limit": {"count": 1, "interval_ms": 1}, "max_concurrency": 1},
        {"rate_limit": None, "max_concurrency": None},
        {"tls": {"ca": CERTIFICATE, "cert": CERTIFICATE, "key": KEY, "verify": False}},
        {"proxy": {"url": "http://proxy:3128", "username": "u", "password": "p"}},
        {"allow_path_suffix": True, "auto_disable_on_gone": True, "capture_response": False},
        {"headers": {"X-Tenant": "a"}, "overridable_headers": ["x-tenant"]},
        {"overridable_headers": []},
    ]:
        validate(conn, {"url": URL, **keys})  # type: ignore[dict-item]


def test_unknown_keys_are_refused_at_every_level(conn: psycopg.Connection) -> None:
    for keys, path in [
        ({"timeout": 5}, "'timeout'"),
        ({"URL": URL}, "'URL'"),
        ({"auth.type": "basic"}, "'auth.type'"),
        ({"auth": {**BASIC, "realm": "x"}}, "'auth.realm'"),
        ({"signing": {"secret": SECRET, "key": "x"}}, "'signing.key'"),
        ({"cloudevents": {"mode": "binary", "id": "x"}}, "'cloudevents.id'"),
        ({"rate_limit": {"count": 1, "interval_ms": 1, "burst": 2}}, "'rate_limit.burst'"),
        ({"tls": {"insecure": True}}, "'tls.insecure'"),
        ({"proxy": {"url": URL, "user": "x"}}, "'proxy.user'"),
    ]:
        refused(conn, {"url": URL, **keys}, path)  # type: ignore[dict-item]
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        validate(conn, {"url": URL, "timeout_second": 5})
    assert "Did you mean timeout_seconds?" in refusal.value.diag.message_hint


def test_a_spelling_of_ulak_or_a_typing_error_is_told_the_right_one(conn: psycopg.Connection) -> None:
    for keys, hint in [
        ({"timeout": 10}, "Did you mean timeout_seconds?"),
        ({"connect_timeout": 5}, "Did you mean connect_timeout_seconds?"),
        ({"signing_secret": SECRET}, "Did you mean signing.secret?"),
        ({"cloudevents": True}, '{"mode": "binary"}'),
        ({"cloudevents_mode": "binary"}, "Did you mean cloudevents.mode?"),
        ({"rate_limit": 100}, '{"count": 100, "interval_ms": 1000}'),
        ({"ssl_verify": True}, "Did you mean tls.verify?"),
        ({"tls_client_cert": "/etc/cert.pem"}, "not the path of a file"),
        ({"tls_pinned_public_key": "sha256//x"}, "give the certificate that you trust as tls.ca"),
        ({"auth": {"type": "aws_sigv4"}}, "Did you mean sigv4?"),
        ({"auth": {**SIGV4, "access_key": "a"}}, "Did you mean auth.access_key_id?"),
        ({"proxy": {"url": URL, "no_proxy": "localhost"}}, "leave proxy out"),
        ({"headers": {"X-Tenant": "a"}, "overridable_headers": ["X-Tenat"]}, "Did you mean x-tenant?"),
        ({"overridable_headers": ["X-Tenant"]}, "Every other header of a message is sent anyway."),
    ]:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            validate(conn, {"url": URL, **keys})  # type: ignore[dict-item]
        assert hint in (refusal.value.diag.message_hint or ""), keys


def test_wrong_values_are_refused_with_their_path(conn: psycopg.Connection) -> None:
    # Twice: a statement's first plan and its cached one must refuse alike.
    for _ in range(2):
        for keys, path in [
            ({"method": "post"}, "method"),
            ({"method": 1}, "method"),
            ({"timeout_seconds": 0.5}, "timeout_seconds"),
            ({"timeout_seconds": 301}, "timeout_seconds"),
            ({"timeout_seconds": "5"}, "timeout_seconds"),
            ({"timeout_seconds": None}, "timeout_seconds"),
            ({"connect_timeout_seconds": 0}, "connect_timeout_seconds"),
            ({"connect_timeout_seconds": 6, "timeout_seconds": 5}, "connect_timeout_seconds"),
            ({"success_statuses": []}, "success_statuses"),
            ({"success_statuses": 200}, "success_statuses"),
            ({"success_statuses": "200"}, "success_statuses"),
            ({"success_statuses": [199]}, "success_statuses"),
            ({"success_statuses": [200.5]}, "success_statuses"),
            ({"allow_path_suffix": "yes"}, "allow_path_suffix"),
            ({"overridable_headers": "X-Tenant"}, "overridable_headers"),
            ({"overridable_headers": [1]}, "overridable_headers"),
            ({"headers": {"X-Tenant": "a"}, "overridable_headers": ["X-Tennant"]}, "overridable_headers names"),
            ({"headers": {"X-Token": "a"}, "overridable_headers": ["X-Token"]}, "overridable_headers names"),
            ({"auth": "basic"}, "auth"),
            ({"auth": {}}, "auth.type"),
            ({"auth": {"type": "digest"}}, "auth.type"),
            ({"auth": {"type": "basic", "username": "ann"}}, "auth.password"),
            ({"auth": {**BASIC, "username": "a\nb"}}, "auth.username"),
            ({"auth": {**BASIC, "token": "t"}}, "auth.token"),
            ({"auth": {"type": "bearer", "token": ""}}, "auth.token"),
            ({"auth": {"type": "bearer", "token": ["t"]}}, "auth.token"),
            ({"auth": {**OAUTH2, "token_url": "ftp://x"}}, "auth.token_url"),
            ({"auth": {**OAUTH2, "client_auth": "query"}}, "auth.client_auth"),
            ({"auth": {**SIGV4, "region": ""}}, "auth.region"),
            ({"auth": BASIC, "headers": {"authorization": "x"}}, "headers.Authorization"),
            ({"signing": {}}, "signing"),
            ({"signing": {"secret": SECRET, "secrets": [SECRET]}}, "signing"),
            ({"signing": {"secret": "hunter2"}}, "signing.secret"),
            ({"signing": {"secret": "whsec_c2hvcnQ="}}, "signing.secret"),
            ({"signing": {"secret": "whsec_" + "A" * 33}}, "signing.secret"),
            ({"signing": {"secrets": []}}, "signing.secrets"),
            ({"signing": {"secrets": SECRET}}, "signing.secrets"),
            ({"signing": {"secrets": [SECRET, "x"]}}, "signing.secrets.1"),
            ({"signing": {"secrets": [SECRET] * 6}}, "signing.secrets"),
            ({"cloudevents": {"source": "x"}}, "cloudevents.mode"),
            ({"cloudevents": {"mode": "batch"}}, "cloudevents.mode"),
            ({"rate_limit": {"count": 1}}, "rate_limit.interval_ms"),
            ({"rate_limit": {"count": 0, "interval_ms": 1}}, "rate_limit.count"),
            ({"rate_limit": {"count": 1, "interval_ms": 86400001}}, "rate_limit.interval_ms"),
            ({"rate_limit": 5}, "rate_limit"),
            ({"max_concurrency": 0}, "max_concurrency"),
            ({"max_concurrency": 1.5}, "max_concurrency"),
            ({"max_concurrency": 3000000000}, "max_concurrency"),
            ({"tls": {"cert": CERTIFICATE}}, "tls.key"),
            ({"tls": {"key": KEY}}, "tls.cert"),
            ({"tls": {"ca": "MII"}}, "tls.ca"),
            ({"tls": {"cert": CERTIFICATE, "key": CERTIFICATE}}, "tls.key"),
            ({"tls": {"verify": 0}}, "tls.verify"),
            ({"proxy": {}}, "proxy.url"),
            ({"proxy": "http://proxy"}, "proxy"),
            ({"proxy": {"url": "http://u:p@proxy"}}, "proxy.url"),
            ({"proxy": {"url": "http://proxy", "password": "p"}}, "proxy.username"),
        ]:
            refused(conn, {"url": URL, **keys}, path)  # type: ignore[dict-item]


def test_a_config_is_an_object_with_a_url(conn: psycopg.Connection) -> None:
    for config in [[], "x", 1, None, {}, {"method": "POST"}, {"url": None}, {"url": 5}, {"url": [URL]}]:
        refused(conn, config)
    refused(conn, {"url": URL, "headers": {"X-A": "b" * 8000}, "tls": {"ca": CERTIFICATE + "x" * 1_100_000}})
    for arguments in ["null, '{}'", "'http', null"]:
        with pytest.raises(psycopg.errors.NullValueNotAllowed):
            conn.execute(f"select menzil.validate_endpoint_config({arguments})")


def test_good_urls_are_valid(conn: psycopg.Connection) -> None:
    for url in [
        "https://example.com", "HTTPS://EXAMPLE.com/", "http://localhost:8080/a/b?c=d&e=%20",
        "https://a-b.c_d.example.com:65535/",
        "https://[2001:db8::1]:443/x", "https://127.0.0.1/", "https://0.255.99.100:1/",
        "https://xn--bcher-kva.example/", "https://example.com?q=1",
        "https://x/a@b",
        "https://example.com/" + "a" * 2000,
    ]:  # fmt: skip
        validate(conn, {"url": url})


def test_urls_that_could_be_read_in_two_ways_are_refused(conn: psycopg.Connection) -> None:
    for url in [
        "", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd", "https://", "https:///path",
        "https://:80/", "http:/x",
        "https://user@example.com", "https://user:pass@example.com", "https://example.com@evil.com",
        "https://example.com:80@evil.com/",
        "https://example.com\\@evil.com", "https://example.com\\x", "https://exa mple.com", " https://example.com",
        "https://example.com ",
        "https://example.com\n", "https://example.com/\r\nHost: x", "https://example.com/\t",
        "https://example.com/\x7f", "https://exämple.com/",
        "https://example.com/ü", "https://１２７.0.0.1/", "https://example.com:0/", "https://example.com:65536/",
        "https://example.com:/",
        "https://example.com:x/", "https://example.com:80:80/", "https://example.com/#x", "https://example.com/%",
        "https://example.com/%zz",
        "https://exam%70le.com/", "https://[::1/", "https://[1.2.3.4]/", "https://[::g]/", "https://[fe80::1%25eth0]/",
        "https://::1/",
        "https://127.1/", "https://2130706433/", "https://0x7f000001/", "https://0X7F.1/", "https://0177.0.0.1/",
        "https://127.0.0.1./", "https://127.0.0.256/", "https://1.2.3.4.5/", "https://example.com./", "https://a.0x/",
        "https://-a.com/", "https://a-.com/", "https://a..b/", "https://./", "https://" + "a" * 64 + ".com/",
        "https://" + "a." * 130 + "com",
        "https://example.com/[x]", "https://example.com/" + "a" * 2040, "https://example.com/<x>",
        "https://example.com/{x}", 'https://x/"',
    ]:  # fmt: skip
        refused(conn, {"url": url}, "url")


def test_plain_http_needs_its_setting(conn: psycopg.Connection) -> None:
    conn.execute("select menzil.set_setting('http_allow_http', 'off')")
    refused(conn, {"url": "http://example.com"}, "url must be https://")
    refused(
        conn, {"url": URL, "auth": {**OAUTH2, "token_url": "http://example.com"}}, "auth.token_url must be https://"
    )
    validate(conn, {"url": URL, "proxy": {"url": "http://proxy:3128"}})


def test_headers_that_could_break_a_request_are_refused(conn: psycopg.Connection) -> None:
    for headers in [
        [], "X: y", {"X Y": "a"}, {"": "a"}, {"X:": "a"}, {"X\n": "a"}, {"Ü": "a"}, {"X": 1}, {"X": None},
        {"X": ["a"]}, {"X": "a\r\nY: b"},
        {"X": "a\n"}, {"X": " a"}, {"X": "a "}, {"X": "ü"}, {"X": "a\x7f"}, {"X": "a" * 8193},
        {"X-A": "1", "x-a": "2"}, {"X-Token": "a\nb"},
        {"Host": "x"}, {"content-length": "5"}, {"Transfer-Encoding": "chunked"}, {"Connection": "close"}, {"TE": "x"},
        {"Upgrade": "x"},
        {"Expect": "100-continue"}, {"Proxy-Authorization": "x"}, {"Webhook-Id": "x"},
        {f"X-{n}": "x" for n in range(101)},
    ]:  # fmt: skip
        refused(conn, {"url": URL, "headers": headers})


def test_a_refusal_never_repeats_a_secret(conn: psycopg.Connection) -> None:
    for keys in [
        {"auth": {"type": "bearer", "token": "hunter2\n"}},
        {"signing": {"secret": "hunter2"}},
        {"method": "hunter2"},
    ]:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            validate(conn, {"url": URL, **keys})  # type: ignore[dict-item]
        diag = refusal.value.diag
        assert "hunter2" not in f"{diag.message_primary} {diag.message_detail} {diag.message_hint} {diag.context}"


def test_the_reference_lists_every_key(conn: psycopg.Connection) -> None:
    page = (REFERENCE / "endpoints.md").read_text(encoding="utf-8")
    table = page.split("## The config of an HTTP endpoint")[1].split("**URLs**")[0]
    listed = {
        key for row in re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE) for key in re.findall(r"`([a-z_.]+)`", row)
    }
    rules = conn.execute("select path from menzil._config_rules('http') where kind not like '%object'").fetchall()
    assert listed == {path for (path,) in rules}
