"""Headers and secrets: what the database accepts the worker can send, and neither lets a line break through."""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from menzil.deliver.http.errors import RefusedError
from menzil.deliver.http.headers import FORBIDDEN, checked, rendered
from menzil.model.errors import InvalidValueError
from menzil.model.secret_paths import HTTP, Rule, check_secret, is_secret_header
from tests.fuzz.asking import refusal
from tests.fuzz.pace import examples

plain = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
names = st.one_of(
    st.text(plain, max_size=12),
    st.from_regex(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{0,12}", fullmatch=True),
    st.sampled_from([*sorted(FORBIDDEN), "Host ", "X-A:", "x" * 255, "x" * 256, "X-Menzil-Attempt", "Content-Type"]),
)
values = st.one_of(
    st.text(plain, max_size=40),
    st.sampled_from(
        [
            "a\r\nX-Evil: 1",
            "a\n",
            "\ra",
            "\x85",
            "\u2028",
            "é" * 4096,
            "é" * 4097,
            "x" * 8192,
            "x" * 8193,
            " a ",
            "\x7f",
            "\x9f",
        ]
    ),
    st.integers(),
    st.none(),
    st.just(["a"]),
)


VALIDATE = "select menzil.validate_endpoint_config('http', %s)"


def sql_accepts(conn: psycopg.Connection, headers: object) -> bool:
    return refusal(conn, "select menzil._check_headers(%s)", Jsonb(headers)) is None


@examples(200)
@given(headers=st.dictionaries(names, values, max_size=3))
@example(headers={"X-A": "a\r\nX-Evil: 1"})
def test_headers_that_the_database_takes_can_be_sent(conn: psycopg.Connection, headers: dict[str, str]) -> None:
    try:
        passed = checked(headers, "message")
    except RefusedError:
        passed = None
    if passed is None:
        assert not sql_accepts(conn, headers)
        return
    lines = rendered(passed).encode().split(b"\r\n")
    assert len(lines) == len(passed) + 1
    assert not any(byte < 0x20 or byte == 0x7F for line in lines for byte in line)


def test_both_sides_forbid_the_same_headers(conn: psycopg.Connection) -> None:
    for name in FORBIDDEN | {name.title() for name in FORBIDDEN}:
        assert refusal(conn, "select menzil._check_headers(%s)", Jsonb({name: "x"})), name


secrets = st.one_of(
    st.text(plain, max_size=20),
    st.sampled_from(
        ["", " ", "x" * 256, "x" * 257, "x" * 8192, "x" * 8193, "a\nb", "\x7f", "\x85", "é", "é" * 8000, " a", "a "]
    ),
    st.sampled_from(
        ["whsec_" + "A" * n + pad for n in (31, 32, 34, 35, 36, 84, 86, 88, 89) for pad in ("", "=", "==")]
    ),
    st.from_regex(r"\s?-----BEGIN ([A-Z]+ )?PRIVATE KEY-----\r?\n?", fullmatch=True),
)
_AUTH = {
    "password": {"type": "basic", "username": "u"},
    "token": {"type": "bearer"},
    "client_secret": {"type": "oauth2", "token_url": "https://a.example/", "client_id": "i"},
    "secret_access_key": {"type": "sigv4", "access_key_id": "i", "region": "r", "service": "s"},
    "session_token": {"type": "sigv4", "access_key_id": "i", "region": "r", "service": "s", "secret_access_key": "s"},
}
_OUTER = {
    "signing": {},
    "tls": {"cert": "-----BEGIN CERTIFICATE-----\nx\n"},
    "proxy": {"url": "http://p.example", "username": "u"},
}


def with_secret(rule: Rule, value: object) -> dict[str, object]:
    outer, key = rule.path
    around = _AUTH[key] if outer == "auth" else _OUTER[outer]
    return {"url": "https://example.com/", outer: {**around, key: [value] if rule.kind == "signing secrets" else value}}


@pytest.mark.parametrize("rule", HTTP, ids=lambda rule: ".".join(rule.path))
def test_a_secret_that_is_encrypted_here_would_have_been_accepted_there(conn: psycopg.Connection, rule: Rule) -> None:
    one = Rule(rule.path, "signing secret") if rule.kind == "signing secrets" else rule

    @examples(60)
    @given(secrets)
    def agree(value: str) -> None:
        try:
            check_secret("x", one, value)
            ours = True
        except InvalidValueError:
            ours = False
        theirs = refusal(conn, VALIDATE, Jsonb(with_secret(rule, value)))
        assert ours == (theirs is None), value
        assert len(value) < 8 or value not in str(theirs)

    agree()


@examples(100)
@given(name=names, value=secrets)
def test_a_header_of_a_config_is_judged_alike(conn: psycopg.Connection, name: str, value: str) -> None:
    config = {"url": "https://example.com/", "headers": {name: value}}
    if refusal(conn, VALIDATE, Jsonb(config)):
        return
    checked({name: value}, "endpoint")
    if is_secret_header(name):
        check_secret("x", Rule(("headers",), "header"), value)
