"""Settings: any text is a value in its range or refused, and a value that was taken is what is read back."""

from __future__ import annotations

import psycopg
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.fuzz.asking import refusal
from tests.fuzz.pace import examples

SETTINGS = "select name, unit, minimum, maximum from menzil.settings"
plain = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
texts = st.one_of(
    st.text(plain, max_size=30),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(
        r"[+-]?[0-9]{1,12}([.][0-9]{1,3})? ?(s|sec|min|hours?|days|weeks|mons|years|ms|kB|MB|GB|bytes|B)?",
        fullmatch=True,
    ),
    st.from_regex(r"P[0-9]{1,9}[YMWD](T[0-9]{1,9}[HMS])?", fullmatch=True),
    st.from_regex(r"([0-9a-f:.]{1,20}(/[0-9]{1,3})?[, ]{0,2}){1,3}", fullmatch=True),
    st.sampled_from(
        [
            "on",
            "OFF",
            "tRuE",
            "no",
            "1",
            "0",
            "yes",
            "default",
            "DEFAULT",
            "infinity",
            "-infinity",
            "NaN",
            "null",
            "allballs",
        ]
    ),
    st.sampled_from(
        [
            "1e3",
            "0x10",
            "1_000",
            "٣",
            "１",
            " 5",
            "5\n",
            "\t5",
            "2147483648 hours",
            "99999999999 years",
            "1 day ago",
            "::/0",
        ]
    ),
)


def rows(conn: psycopg.Connection) -> list[tuple[str, str, int | None, int | None]]:
    return conn.execute(SETTINGS).fetchall()


@examples(200)
@given(data=st.data(), text=texts)
def test_any_text_is_a_value_in_range_or_refused(conn: psycopg.Connection, data: st.DataObject, text: str) -> None:
    name, unit, minimum, maximum = data.draw(st.sampled_from(rows(conn)))
    before = conn.execute("select menzil.setting(%s)", [name]).fetchone()
    if refused := refusal(conn, "select menzil.set_setting(%s, %s)", name, text):
        assert refused.diag.message_hint
        assert name in (refused.diag.message_primary or "")
        assert conn.execute("select menzil.setting(%s)", [name]).fetchone() == before
        return
    (value,) = conn.execute("select menzil.setting(%s)", [name]).fetchone() or ()
    if minimum is not None and maximum is not None:
        assert minimum <= int(value) <= maximum
    elif unit == "boolean":
        assert value in ("true", "false")
    conn.execute("select menzil.set_setting(%s, %s)", [name, value])
    assert conn.execute("select menzil.setting(%s)", [name]).fetchone() == (value,)


def test_every_name_with_one_letter_wrong_brings_the_right_one_to_mind(conn: psycopg.Connection) -> None:
    known = [row[0] for row in rows(conn)]
    for name in known:
        for at in range(len(name)):
            for wrong in {
                name[:at] + name[at + 1 :],
                name[:at] + "q" + name[at + 1 :],
                name[:at] + "x" + name[at:],
            } - set(known):
                refused = refusal(conn, "select menzil.setting(%s)", wrong)
                assert refused is not None
                if len(name) > 6:  # of a short word one letter is much
                    assert f"Did you mean {name}?" in (refused.diag.message_hint or ""), wrong


@examples(150)
@given(name=st.text(plain, max_size=300))
def test_a_name_that_is_none_is_refused_in_one_line(conn: psycopg.Connection, name: str) -> None:
    # Words of our own source are among what is tried, and some of them are settings.
    assume(conn.execute("select 1 from menzil.settings where name = %s", [name]).fetchone() is None)
    refused = refusal(conn, "select menzil.set_setting(%s, '1')", name)
    assert refused is not None
    said = refused.diag.message_primary or ""
    assert len(said.splitlines()) == 1
    assert len(said) < 500
