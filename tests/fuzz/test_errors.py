"""Texts of errors: no secret in them, no control characters, a bounded length, and the class they were given."""

from __future__ import annotations

from urllib.parse import quote

import psycopg
from hypothesis import assume, given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menzil.deliver.http.excerpt import LONGEST, Hider, line, safe
from menzil.worker.address import Address
from menzil.worker.log import Hide
from menzil.worker.outcomes import failure
from tests.fuzz.pace import examples

# A star or the mark of an unreadable character would be found in any text that something was taken out of.
letters = st.characters(
    exclude_categories=["Cs", "Cc"],
    exclude_characters="*\ufffd\ufeff\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069",
)
secrets = st.text(letters, min_size=4, max_size=60).filter(lambda text: text.strip() == text)
around = st.text(max_size=60) | st.sampled_from(["", "Bearer ", '{"token": "', "x" * 1990, "y" * 5000, "password="])


@examples(200)
@given(st.lists(secrets, min_size=1, max_size=3), st.data(), around, around)
def test_a_secret_that_is_said_back_in_whatever_text_is_not_stored(
    known: list[str], data: st.DataObject, before: str, after: str
) -> None:
    secret = data.draw(st.sampled_from(known))
    spelled = data.draw(st.sampled_from([secret, quote(secret), quote(secret, safe=""), quote(secret).lower()]))
    assume(secret not in before and secret not in after)
    stored = safe(f"{before}{spelled}{after}", Hider(known), LONGEST)
    assert secret not in stored
    assert spelled not in stored or spelled not in (secret, quote(secret), quote(secret, safe=""))
    assert len(stored) <= LONGEST
    assert not any(ord(char) < 32 and char not in "\t\n" for char in stored)
    assert len(line(stored)) <= 200


passwords = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="*"), min_size=3, max_size=20)


@examples(200)
@given(passwords, st.booleans(), st.text(max_size=40))
def test_the_password_of_a_dsn_is_in_no_text_that_repeats_the_dsn(password: str, as_url: bool, around: str) -> None:
    dsn = (
        f"postgresql://shop:{quote(password, safe='')}@127.0.0.1/shop"
        if as_url
        else make_conninfo(user="shop", password=password)
    )
    assert conninfo_to_dict(dsn)["password"] == password
    hide = Hide(Address(dsn).secrets())
    rest = f"{around} host=127.0.0.1 user=shop password= postgresql://shop:@/ ********"
    assume(password not in rest and quote(password, safe="") not in rest)
    for text in (f"{around}{dsn}{around}", f"{around}{password}{around}", f"no: {quote(password, safe='')}@host"):
        said = hide(text)
        assert password not in said
        assert quote(password, safe="") not in said
    assert password not in repr(Address(dsn))


@examples(200)
@given(st.text(max_size=60) | st.just("x" * 9000), passwords)
def test_what_a_handler_raised_is_told_with_its_kind_and_without_the_password(text: str, password: str) -> None:
    assume(password not in "ValueError: ********")
    said = failure(ValueError(f"{text}{password}{text}"), Hide([password]))
    assert said.reason.startswith("ValueError: ")
    assume(password not in text)
    assert password not in said.reason.removeprefix("ValueError: ")
    assert len(said.reason) < 2200
    assert said.retry is True


CLASSES = [
    "",
    "[RETRYABLE] ",
    "[PERMANENT] ",
    "[PERMANENT] [DISABLE] ",
    "[permanent] ",
    "[RETRYABLE] [PERMANENT] ",
    "PERMANENT ",
]


@examples(60)
@given(
    prefix=st.sampled_from(CLASSES),
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40),
    times=st.sampled_from([1, 1, 600]),
)
def test_an_error_keeps_its_class_and_is_cut_at_its_end(
    conn: psycopg.Connection, prefix: str, text: str, times: int
) -> None:
    error = prefix + text * times
    conn.execute("select menzil.channel_set('errors')")
    conn.execute("select menzil.send('errors', '{}')")
    ask = (
        "select menzil.message_fail(id, num_attempts, %s, '1 s') from menzil.message_dequeue(60000, 1, array['errors'])"
    )
    (outcome,) = conn.execute(ask, [error]).fetchone() or ()
    kept = conn.execute("select error from menzil.attempts order by ended_at desc, message_id desc limit 1").fetchone()
    conn.execute("select menzil.channel_purge('errors')")
    assert outcome == ("dead" if error.startswith("[PERMANENT]") else "retry")
    assert kept == (error[:8192],)
