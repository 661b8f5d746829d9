"""The setting redact: SQL takes exactly the patterns that Python can read, and Python reads those that were meant."""

from __future__ import annotations

import re

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from menzil.model.redact import Redactor
from menzil.model.redact_rules import split
from tests.fuzz.pace import examples

PIECES = [
    "$", ".", "..", "[", "]", "*", "[*]", "[0]", "[12]", '["', '"]', "['", "']", '["a,b"]', "['x y']", ",", "\n", ", ",
    " ", "\t", "-", "_", "**", "a", "card", "é", "٣", "\u00a0", "\u2003", "'", '"', "$.card", "$..pin", "password",
]  # fmt: skip
settings = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30),
    st.text(st.sampled_from("$.[]*'\"a, \n"), max_size=20),
)


@given(setting=settings)
@example(setting='["a\nb"]')
@example(setting="$['[\"'].x, y\"]")
@example(setting="['[\"']a,b\"]")
@examples(20)
def test_sql_and_python_take_the_same_patterns(conn: psycopg.Connection, setting: str) -> None:
    here = Redactor.of_setting(setting)
    if setting.strip(" \t\n").lower() == "default":
        return
    if here.faults:
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
            conn.execute("select menzil.set_setting('redact', %s)", (setting,))
        assert refused.value.diag.message_hint
        return
    conn.execute("select menzil.set_setting('redact', %s)", (setting,))
    row = conn.execute("select menzil.setting('redact')").fetchone()
    assert row is not None
    assert split(row[0]) == split(setting), "the patterns that are stored are those that were given"
    assert not Redactor.of_setting(row[0]).faults


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("password, $.a[", "'$.a[' is not a JSON path: it breaks off at '['."),
        ("$.card number, $..a b", "'$..a b' is not a JSON path: it breaks off at ' b'."),
        ("**", "'**' is not a pattern of key names."),
    ],
)
def test_pattern_that_cannot_be_read_is_named(conn: psycopg.Connection, setting: str, sentence: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=re.escape(sentence)) as refused:
        conn.execute("select menzil.set_setting('redact', %s)", (setting,))
    assert "such as $.card.*" in (refused.value.diag.message_hint or "")
    assert sentence == Redactor.of_setting(setting).faults[0].message
