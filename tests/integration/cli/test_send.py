"""`menzil send` as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from menzil import Menzil
from tests.integration.cli.user import User

MENZIL = [sys.executable, "-m", "menzil"]


def test_a_sent_message_is_there_under_the_printed_id(user: User) -> None:
    sent = user.gets("send", "work", '{"order": 42}')
    found = user.reads("message", "show", sent)
    assert (found["id"], found["payload"], found["status"]) == (int(sent), {"order": 42}, "pending")


def test_every_option_reaches_the_message(user: User) -> None:
    correlation = "11111111-2222-3333-4444-555555555555"
    words = ["--priority", "7", "--ordering-key", "k", "--idempotency-key", "once", "--delay", "1h", "--expires", "2h"]
    words += ["--correlation-id", correlation, "--header", "x-a=1", "--header", "x-b=two=2", "--metadata", '{"m": 1}']
    sent = user.gets("send", "work", "[1]", *words)
    assert user.gets("send", "work", "[1]", *words) == sent, "the same idempotency key is the same message"
    found = user.reads("message", "show", sent)
    assert found["priority"] == 7
    assert (found["ordering_key"], found["idempotency_key"], found["correlation_id"]) == ("k", "once", correlation)
    assert (found["headers"], found["metadata"]) == ({"x-a": "1", "x-b": "two=2"}, {"m": 1})
    created = datetime.fromisoformat(found["created_at"])
    near = timedelta(minutes=1)
    assert abs(datetime.fromisoformat(found["scheduled_at"]) - created - timedelta(hours=1)) < near
    assert abs(datetime.fromisoformat(found["expires_at"]) - created - timedelta(hours=2)) < near


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_a_time_without_a_zone_is_in_utc_wherever_the_user_is(
    user: User, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    year = datetime.now(UTC).year + 1
    for written in (f"{year}-01-31T12:00", f"{year}-01-31 13:00+01:00"):
        found = user.reads("message", "show", user.gets("send", "work", "1", "--at", written))
        assert found["scheduled_at"] == f"{year}-01-31T12:00:00Z"


@pytest.mark.parametrize("written", ["+2h", "in 2h", "in 120 min"])
def test_a_time_may_be_a_distance_from_now(user: User, written: str) -> None:
    found = user.reads("message", "show", user.gets("send", "work", "1", "--at", written))
    distance = datetime.fromisoformat(found["scheduled_at"]) - datetime.fromisoformat(found["created_at"])
    assert abs(distance - timedelta(hours=2)) < timedelta(minutes=1)


def test_a_body_may_come_from_a_file_or_standard_input(user: User, tmp_path: Path) -> None:
    (tmp_path / "body.json").write_text('{"from": "file"}\n')
    sent = user.gets("send", "work", f"@{tmp_path}/body.json")
    assert user.reads("message", "show", sent)["payload"] == {"from": "file"}
    sent = user.gets("send", "work", "-", stdin='{"from": "stdin"}')
    assert user.reads("message", "show", sent)["payload"] == {"from": "stdin"}


def test_a_message_without_a_body_is_an_empty_object(user: User) -> None:
    assert user.reads("message", "show", user.gets("send", "work"))["payload"] == {}


def test_text_and_bytes_are_sent_as_they_are(user: User, mq: Menzil) -> None:
    user.gets("send", "work", "--text", "not {json")
    user.gets("send", "work", "--bytes", "-", stdin=b"\x00\xff")
    assert [message.body for message in mq.dequeue(2)] == ["not {json", b"\x00\xff"]


def test_no_digit_of_a_number_is_lost(user: User) -> None:
    sent = user.gets("send", "work", "[0.10000000000000000000001, 12345678901234567890123]")
    with psycopg.connect(user.dsn) as conn:
        row = conn.execute("select payload::text from menzil.queue where id = %s", [sent]).fetchone()
    assert row == ("[0.10000000000000000000001, 12345678901234567890123]",)
    sent = user.gets("send", "work", "7" * 5000)
    with psycopg.connect(user.dsn) as conn:
        row = conn.execute("select payload::text from menzil.queue where id = %s", [sent]).fetchone()
    assert row == ("7" * 5000,)


def test_half_a_character_is_refused_with_a_sentence(user: User) -> None:
    told = user.fails("send", "work", r'{"name": "\ud83d"}')
    assert told.startswith(r"Error: The body has half a character, \ud83d.")
    assert user.gets("send", "work", r'{"name": "\ud83d\ude00"}')


def test_a_batch_is_a_message_per_line(user: User, tmp_path: Path) -> None:
    ids = user.gets("send", "work", "--batch", "-", "--priority", "3", stdin='{"n": 1}\n\n{"n": 2}\n').splitlines()
    assert [user.reads("message", "show", each)["payload"]["n"] for each in ids] == [1, 2]
    assert user.reads("message", "show", ids[1])["priority"] == 3
    (tmp_path / "lines").write_text("1\n2\n3")
    assert len(user.reads("send", "work", "--batch", f"@{tmp_path}/lines")["ids"]) == 3


def test_a_long_batch_goes_in_chunks_and_a_bad_line_says_how_far_it_got(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("menzil.cli.send.CHUNK", 2)
    result = user.types("send", "work", "--batch", stdin="1\n2\n3\n4\nnope\n")
    assert (result.exit_code, len(result.stdout.splitlines())) == (2, 4)
    assert "The body in line 5 is not JSON" in result.stderr
    assert result.stderr.startswith("Stopped: 4 sent.\n")
    assert user.reads("channel", "show", "work")["pending"] == 4


def test_a_short_batch_with_a_bad_line_sends_nothing(user: User) -> None:
    assert "line 2" in user.fails("send", "work", "--batch", stdin="1\nnope\n")
    assert user.reads("channel", "show", "work")["pending"] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere", "1"], "There is no channel or endpoint named 'nowhere'."),
        (["work", "nope"], "The body is not JSON"),
        (["work", "NaN"], "NaN is no JSON number"),
        (["work", "[" * 100_000], "nested too deeply"),
        (["work", "@/nowhere/at/all"], "cannot be read"),
        (["work", "1", "--delay", "soon"], "'soon' is not a valid duration."),
        (["work", "1", "--at", "tomorrow-ish"], "'tomorrow-ish' is not a valid time."),
        (["work", "1", "--priority", "11"], "Priority 11 is out of range"),
        (["work", "1", "--priority", "high"], "'high' is not a valid integer"),
        (["work", "1", "--header", "nonsense"], "'nonsense' is not a valid header."),
        (["work", "1", "--metadata", "[1]"], "The metadata must be a JSON object."),
        (["work", "1", "--correlation-id", "x"], "The correlation_id is not a UUID."),
        (["work", "1", "--delay", "1", "--at", "now"], "say the same thing"),
        (["work", "--batch", "--idempotency-key", "k"], "--batch takes no"),
        (["work", "--batch", "@/nowhere/at/all"], "cannot be read"),
        (["work", "1", "--text", "--bytes"], "say different things"),
        ([], "Missing argument 'NAME'"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_refused_in_a_sentence(user: User, words: list[str], said: str) -> None:
    answer = user.fails("send", *words)
    assert said in answer
    assert "Traceback" not in answer


def test_a_real_shell_may_pipe_into_it_and_out_of_it(user: User) -> None:
    environment = os.environ | {"MENZIL_DSN": user.dsn}
    command = [*MENZIL, "send", "work", "--batch", "-"]
    lines = "".join(f"{number}\n" for number in range(12_000))
    sent = subprocess.run(command, input=lines, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert len(sent.stdout.splitlines()) == 12_000
    assert sent.stderr == "Sent 12,000 messages.\n", "no progress where nobody watches"

    script = f"{sys.executable} -m menzil message list --limit 10000 | head -n 1; exit ${{PIPESTATUS[0]}}"
    broken = subprocess.run(
        ["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert broken.stdout.split()[:2] == ["id", "status"]
    assert broken.stderr == "", "a reader that leaves is no error"


def test_a_database_without_menzil_says_what_to_do(fresh_db: str) -> None:
    answer = User(fresh_db).fails("send", "work", "1")
    assert "menzil is not installed in database" in answer
    assert "`menzil migrate`" in answer


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    answer = User("postgresql://nobody@127.0.0.1:1/nothing").fails("send", "work", "1")
    assert answer.startswith("Error: ")
    assert "Traceback" not in answer
    assert "not a connection string" in User("postgresql://[").fails("send", "work", "1")
