"""Redaction: what the patterns name is hidden, and nothing else is changed."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from menzil.model.errors import InvalidValueError
from menzil.model.redact import MARK, Redactor

SECRET = "hunter2-4242"
REDACT = Redactor(["password", "*token*", "authorization", "*cookie*", "api_key", "$.card.*", "$.a.*.b"])


@pytest.mark.parametrize(
    ("patterns", "before", "after"),
    [
        (["password"], {"password": 1, "pass": 2}, {"password": MARK, "pass": 2}),
        (["password"], {"user": [{"Password": "x"}]}, {"user": [{"Password": MARK}]}),
        (["api_key"], {"apiKey": 1, "API-Key": 2, "apikeys": 3}, {"apiKey": MARK, "API-Key": MARK, "apikeys": 3}),
        (["*token*"], {"a_token_2": 1, "tokenised": 1, "toke": 1}, {"a_token_2": MARK, "tokenised": MARK, "toke": 1}),
        (["pass*word"], {"pass_a_word": 1, "password": 2, "w": 3}, {"pass_a_word": MARK, "password": MARK, "w": 3}),
        (["password"], {"db.password": 1, "user[password]": 2}, {"db.password": MARK, "user[password]": MARK}),
        (["$.card.*"], {"card": {"n": 1, "m": [2]}}, {"card": {"n": MARK, "m": MARK}}),
        (["$.card.*"], {"x": {"card": {"n": 1}}}, {"x": {"card": {"n": 1}}}),
        (["$.a.*.b"], {"a": {"x": {"b": 1, "c": 2}, "b": 3}}, {"a": {"x": {"b": MARK, "c": 2}, "b": 3}}),
        (["$.a.*.b"], {"a": [{"b": 1}, {"c": 2}]}, {"a": [{"b": MARK}, {"c": 2}]}),
        (["$.cards.n"], {"cards": [{"n": 1}, [{"n": 2}]]}, {"cards": [{"n": MARK}, [{"n": MARK}]]}),
        (["$.list[1]"], {"list": [1, 2, 3]}, {"list": [1, MARK, 3]}),
        (["$[*].n"], [{"n": 1}, {"m": 1}], [{"n": MARK}, {"m": 1}]),
        (["$..pin"], {"a": [{"b": {"pin": 1}}], "pin": 2}, {"a": [{"b": {"pin": MARK}}], "pin": MARK}),
        (['$["a.b"]["c d"]'], {"a.b": {"c d": 1, "cd": 2, "e": 3}}, {"a.b": {"c d": MARK, "cd": MARK, "e": 3}}),
        (["$"], {"a": 1}, MARK),
        (["*"], {"a": {"b": 1}}, {"a": MARK}),
        ([], {"password": 1}, {"password": 1}),
    ],
)  # fmt: skip
def test_keys_and_paths_hide_what_they_name(patterns: list[str], before: Any, after: Any) -> None:
    assert Redactor(patterns).value(before) == after
    assert json.loads(Redactor(patterns).json(json.dumps(before))) == after


def test_what_was_given_is_not_changed() -> None:
    given_value = {"a": [{"password": "x"}]}
    REDACT.value(given_value)
    assert given_value == {"a": [{"password": "x"}]}


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer {}",
        "authorization:Basic {}",
        "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Digest username=\"u\", response=\"{}\"\r\nAccept: */*",
        "Set-Cookie: sid={}; Path=/; HttpOnly",
        "could not log in with password={}",
        "could not log in with password={}, giving up",
        "password = '{}' host=db",
        "--password={} --host=db",
        "password => \"{}\"",
        "https://api.example.org/v1?user=ada&access_token={}&x=1#top",
        "https://api.example.org/v1?user%5Bpassword%5D={}&x=1",
        "https://login.example.org/?next=https%3A%2F%2Fx.org%2F%3Faccess_token%3D{}%26y%3D1",
        "postgresql://ada:{}@db.example.org/shop",
        "redis://:{}@cache:6379",
        "401 from partner: {{\"error\": \"no\", \"api_key\": \"{}\"}}",
        "401 from partner: {{\"error\": \"no\", \"api_key\": \"{}",
        "body: {{\"a\": [1, {{\"password\": [\"x\", \"{}\"]}}]}} end",
        "KeyError: {{'user': 'ada', 'password': '{}'}}",
        "KeyError: {{'when': datetime(2026, 1, 1), 'password': '{}', 'x': 1}}",
        "said {{\\\"password\\\": \\\"{}\\\", \\\"x\\\": 1}}",
        "b'{{\"access_token\":\"{}\"}}'",
        "{{\"log\": \"sent Authorization: Bearer {}\"}}",
        "{{\"inner\": \"{{\\\"password\\\": \\\"{}\\\"}}\"}}",
        "{{\"\\u0070assword\": \"{}\"}}",
        "{{\"card\": {{\"number\": \"{}\"}}}}",
        "declined: {{\"card\": {{\"number\": \"{}\"}}}} by bank",
        "declined: {{'card': {{'number': '{}'}}, 'ok': False}} by bank",
        "refused credentials Bearer {}",
        "password: [abc] {}",
        "[password={}]",
        "user[password]={}",
        "spring.datasource.password={}",
        "login(password={})",
        "login(password=Secret('{}'), user=1)",
        "{{\"password\": Decimal('{}'), \"x\": 1}}",
        "password: |\n  ok\npassword: {}",
    ],
)  # fmt: skip
def test_secrets_in_free_text_are_hidden(text: str) -> None:
    before = text.format(SECRET)
    assert SECRET in before
    after = REDACT.text(before)
    assert SECRET not in after
    assert "4242" not in after
    assert MARK in after
    assert REDACT.text(after) == after
    assert SECRET not in json.dumps(REDACT.value({"response": {"body": before}}))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("https://x.org/?token=abc&user=ada", "https://x.org/?token=[redacted]&user=ada"),
        ("Host: x\nCookie: a=b; c=d\nAccept: y", "Host: x\nCookie: [redacted]\nAccept: y"),
        ('{"n": 1.10, "password": "x" , "m":1e400}', '{"n": 1.10, "password": "[redacted]" , "m":1e400}'),
        ("user=ada password=x host=db", "user=ada password=[redacted] host=db"),
        ("postgresql://ada:x@db/shop", "postgresql://ada:[redacted]@db/shop"),
        ("sid=1; token=abc; x=2", "sid=1; token=[redacted]; x=2"),
        ("{'password': 'x', 'user': 'ada'}", "{'password': \"[redacted]\", 'user': 'ada'}"),
    ],
)
def test_the_rest_of_the_text_stays(before: str, after: str) -> None:
    assert REDACT.text(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "HTTP 500",
        "jwt.InvalidTokenError: Not enough segments",
        "connection refused: 10.0.0.1:5432",
        "the password was wrong",
        "Basic authentication failed",
        "at 12:00:05 the server said [1, 2",
        "https://example.org:8443/a?b=c",
        '{"user": "ada", "n": 12345678901234567890.000}',
        "[see {here}]",
    ],
)
def test_texts_without_secrets_stay_as_they_are(text: str) -> None:
    assert REDACT.text(text) == text


def test_headers_are_matched_by_name_in_any_case() -> None:
    headers = {"AUTHORIZATION": "Bearer x", "Set-Cookie": "a=b", "Referer": "https://x.org/?token=abc", "Accept": "*/*"}
    hidden = REDACT.headers(headers)
    assert hidden == {
        "AUTHORIZATION": MARK,
        "Set-Cookie": MARK,
        "Referer": "https://x.org/?token=[redacted]",
        "Accept": "*/*",
    }


def test_the_setting_is_a_list_separated_by_commas() -> None:
    redactor = Redactor.of_setting(' password , $["a,b"], *token*,\n')
    assert redactor.value({"password": 1, "a,b": 2, "my_token": 3, "c": 4}) == {
        "password": MARK,
        "a,b": MARK,
        "my_token": MARK,
        "c": 4,
    }
    assert not Redactor.of_setting("")
    assert Redactor.of_setting(None).key("client_secret")


@pytest.mark.parametrize("pattern", ["", " ", "-", "**", "$.", "$a", "$.a[", "$.a[x]", "$['a]", "$.a..", "$.a$"])
def test_what_is_no_pattern_is_refused_with_a_hint(pattern: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        Redactor([pattern])
    assert refused.value.hint


@pytest.mark.parametrize("setting", ["password, $.a[", "**", "$.."])
def test_a_setting_that_cannot_be_read_hides_everything_and_says_why(setting: str) -> None:
    redactor = Redactor.of_setting(setting)
    assert redactor
    assert [bool(fault.hint) for fault in redactor.faults] == [True]
    assert redactor.value({"a": [1, {"b": "hunter2"}]}) == MARK
    assert redactor.value("hunter2") == redactor.text("hunter2") == MARK
    assert redactor.json('{"a": "hunter2"}') == f'"{MARK}"'
    assert redactor.headers({"x": "hunter2"}) == {"x": MARK}
    assert Redactor.of_setting("password, $.a").faults == []


def test_one_text_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="list of texts"):
        Redactor("password")


class Once(dict[str, Any]):
    """An object of a handler's answer, which is read a few times at most."""

    def items(self) -> Any:
        self.asked = getattr(self, "asked", 0) + 1
        assert self.asked < 10, "the circle is gone round and round"
        return super().items()


def test_a_circle_is_gone_round_once_and_left_for_json_to_refuse() -> None:
    circle = Once(password=SECRET, name="ada")
    circle["boss"] = [{"of": circle}]
    circle["twins"] = [twin := {"token": SECRET}, twin]
    redacted = REDACT.value(circle)
    assert (redacted["password"], redacted["name"]) == (MARK, "ada")
    assert redacted["twins"] == [{"token": MARK}, {"token": MARK}]
    with pytest.raises(ValueError, match="Circular reference"):
        json.dumps(redacted)


def test_documents_nested_deeper_than_the_stack_are_redacted() -> None:
    text = '{"a":' * 50_000 + '{"password": "x", "b": 1}' + "}" * 50_000
    assert REDACT.json(text).count(MARK) == 1
    deep: Any = {"password": "x"}
    for _ in range(50_000):
        deep = [deep]
    hidden = REDACT.value(deep)
    while isinstance(hidden, list):
        hidden = hidden[0]
    assert hidden == {"password": MARK}


@pytest.mark.parametrize(
    "part",
    [
        "[",
        "{",
        '"',
        "\\",
        "a",
        "a[",
        "a[a]",
        " ",
        "a ",
        "a=",
        "=",
        "://a",
        "Bearer ",
        '"a',
        "'a': ",
        '{"a":',
        "%3D",
        "x:@",
    ],
)
def test_no_text_takes_longer_than_its_length(part: str) -> None:
    def cost(size: int) -> float:
        text = part * (size // len(part))
        begun = time.process_time()
        REDACT.text(text)
        REDACT.text(text + "x")
        return time.process_time() - begun

    small = min(cost(20_000) for _ in range(3))
    # Four times the text; sixteen times the time would be quadratic. A busy machine may spoil a try, not all three.
    assert any(cost(80_000) < max(8 * small, 0.5) for _ in range(3))


KEYS = st.sampled_from(["password", "my_token", "user", "card", "number", "a", "b", "Authorization", "x y"])
FINITE: dict[str, Any] = {"allow_nan": False, "allow_infinity": False}
NUMBERS = st.one_of(st.integers(), st.decimals(**FINITE), st.floats(**FINITE))
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.text(alphabet="abc é\"\\'\u2028", max_size=8))
DOCUMENTS = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)


def _planted(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """The document with a secret of its own in every place that a reader of the patterns would call secret."""
    if isinstance(value, list):
        return [_planted(one, (*path, n)) for n, one in enumerate(value)]
    if isinstance(value, dict):
        secret = {"password", "my_token", "Authorization"} | (set(value) if path == ("card",) else set())
        return {key: {"deep": [SECRET]} if key in secret else _planted(one, (*path, key)) for key, one in value.items()}
    return value


@given(DOCUMENTS)
def test_no_planted_secret_is_left_in_any_form(document: Any) -> None:
    planted = _planted(document)
    for indent in (None, 2):
        written = json.dumps(planted, indent=indent, ensure_ascii=indent is None)
        assert SECRET not in REDACT.json(written)
        assert SECRET not in REDACT.text(written)
        assert SECRET not in REDACT.text(f"said: {written} and left")
        assert SECRET not in json.dumps(REDACT.value({"inner": written})["inner"])
    assert SECRET not in json.dumps(REDACT.value(planted))


@given(DOCUMENTS)
def test_text_and_value_agree(document: Any) -> None:
    assert json.loads(REDACT.json(json.dumps(document))) == REDACT.value(document)


@given(st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3)))
def test_numbers_keep_every_digit(document: Any) -> None:
    class Exact(json.JSONEncoder):
        def default(self, o: Any) -> Any:
            return float(o) if isinstance(o, Decimal) else super().default(o)

    written = json.dumps(document, cls=Exact)
    numbers = Redactor(["nothing"]).json(written)
    assert numbers == written


@given(st.text())
def test_any_text_is_redacted_without_an_error_and_only_once(text: str) -> None:
    once = REDACT.text(text)
    assert REDACT.text(once) == once


@given(st.text(alphabet="ab:='\"\\{}[],&; \npassword", max_size=60))
def test_texts_made_of_signs_are_redacted_only_once(text: str) -> None:
    once = REDACT.text(text)
    assert REDACT.text(once) == once


@given(DOCUMENTS, st.integers(0, 400))
def test_a_document_that_breaks_off_hides_its_secrets_too(document: Any, cut: int) -> None:
    written = json.dumps(_planted({"first": 1, "card": document, "rest": document}))[:cut]
    assert SECRET not in REDACT.text(written)
