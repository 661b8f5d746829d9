"""What the command says when it cannot: a sentence that names what is wrong, and a hint that says what to do."""

from __future__ import annotations

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo

from menzil.cli import main
from tests.integration.cli.user import User

READ_ONLY = (
    "Error: This connection is read-only.\n"
    "Hint: connect to the primary, or turn off default_transaction_read_only for this role\n"
)


def test_a_name_with_a_slip_is_answered_with_the_nearest_one(user: User) -> None:
    user.gets("channel", "set", "billing")
    near = "Hint: Did you mean billing? `menzil channel list` shows them all.\n"
    for words in (
        ["send", "biling", "1"],
        ["channel", "show", "biling"],
        ["message", "list", "--channel", "biling"],
        ["replay", "--endpoint", "biling", "--from", "-1h"],
        ["dlq", "list", "--endpoint", "biling"],
        ["subscription", "list", "--endpoint", "biling"],
    ):
        assert user.fails(*words).endswith(near)
    assert user.fails("send", "biling", "--batch", stdin="1\n").endswith(near)
    assert "Hint: Make it with `menzil channel set 'quite another'`" in user.fails("send", "quite another", "1")


def test_a_list_refuses_a_channel_that_never_was_and_knows_one_that_is_gone(user: User) -> None:
    assert "There is no channel or endpoint named 'nope'." in user.fails("message", "list", "--channel", "nope")
    user.gets("channel", "set", "gone")
    sent = user.gets("send", "gone", "1")
    user.gets("message", "cancel", sent)
    user.gets("channel", "release", "gone")
    assert user.reads("message", "list", "--channel", "gone")["messages"][0]["id"] == int(sent)
    assert user.reads("message", "list", "--channel", "work")["messages"] == []
    assert user.reads("dlq", "list", "--endpoint", "gone") == []


def test_a_list_of_subscriptions_refuses_an_event_type_that_is_not_there(user: User) -> None:
    user.gets("event-type", "create", "order.paid")
    assert user.reads("subscription", "list", "--event-type", "order.paid") == []
    assert "There is no event type named 'order.payed'." in user.fails(
        "subscription", "list", "--event-type", "order.payed"
    )


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["metrics", "--port", "9469"], "--serve"),
        (["metrics", "--prometheus", "--host", "127.0.0.1"], "--serve"),
        (["metrics", "--token", "0" * 64], "--serve"),
        (["metrics", "--log-format", "json"], "--serve"),
        (["worker", "--once", "--metrics-host", "127.0.0.1"], "--metrics-port"),
        (["worker", "--once", "--metrics-token", "0" * 64], "--metrics-port"),
        (["channel", "set", "work", "--release-count", "5"], "--release-interval"),
    ],
)
def test_an_option_that_would_do_nothing_alone_is_refused(user: User, words: list[str], needed: str) -> None:
    assert needed in user.fails(*words)


def test_a_count_is_changed_alone_where_there_is_an_interval(user: User) -> None:
    user.gets("channel", "set", "work", "--release-interval", "1s")
    user.gets("channel", "set", "work", "--release-count", "5")
    assert user.reads("channel", "show", "work")["release_count"] == 5
    user.gets("channel", "set", "work", "--release-interval", "0", "--release-count", "1")


def test_a_command_with_a_slip_is_answered_with_the_nearest_one() -> None:
    answer = CliRunner().invoke(main, ["snd", "work", "1"])
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert "No such command 'snd'. Did you mean 'send'?" in answer.stderr
    assert "Did you mean" not in CliRunner().invoke(main, ["zzz"]).stderr


@pytest.mark.parametrize(
    "words",
    [
        ["send", "work", "1"],
        ["channel", "set", "other"],
        ["message", "cancel", "1"],
        ["settings", "set", "notify", "off"],
        ["migrate", "--reapply"],
        ["worker", "--once"],
    ],
)
def test_a_connection_that_may_not_write_says_so(user: User, words: list[str]) -> None:
    user.gets("send", "work", "1")
    locked = make_conninfo(user.dsn, options="-c default_transaction_read_only=on")
    assert User(locked).fails(*words).endswith(READ_ONLY)


@pytest.mark.parametrize("words", [["channel", "list"], ["doctor"], ["worker", "--once"], ["migrate"]])
def test_a_server_that_refuses_the_password_is_one_sentence_and_one_hint(user: User, words: list[str]) -> None:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("create role cli_stranger login password 'right'")
        try:
            answer = User(make_conninfo(user.dsn, user="cli_stranger", password="wrong")).fails(*words)
        finally:
            conn.execute("drop role cli_stranger")
    sentence, hint = answer.splitlines()
    assert sentence.startswith("Error: The server cannot be reached: connection to server at ")
    assert 'password authentication failed for user "cli_stranger"' in sentence
    helps, which = hint.split("; ")
    assert helps == "Hint: give the password in the DSN, PGPASSWORD or ~/.pgpass"
    assert which == "the database was chosen by the variable MENZIL_DSN"


def test_a_worker_on_a_database_without_menzil_says_what_every_command_says(fresh_db: str) -> None:
    stranger = User(fresh_db)
    assert stranger.fails("worker", "--once") == stranger.fails("channel", "list")


def test_what_was_mistyped_comes_with_a_hint(user: User) -> None:
    assert "\nHint: write 32 hexadecimal digits" in user.fails("send", "work", "1", "--correlation-id", "nope")
    assert "\nHint: choose a target from " in user.fails("migrate", "--target", "99")
    assert "\nHint: leave --from out" in user.fails("sql", "upgrade", "--from", "99")
    with psycopg.connect(user.dsn) as conn, pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        conn.execute("select menzil.message_dequeue(1000, 0)")
    assert refused.value.diag.message_hint == "Give 1 or more."
