"""The command in a real shell: the embedded server, pipes, a terminal that cannot show everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.user import User
from tests.integration.embedded_room import Room

MENZIL = [sys.executable, "-m", "menzil"]


def typed(environment: dict[str, str], *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    named = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "MENZIL_"))}
    return subprocess.run(
        [*MENZIL, *words], env=named | environment, cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )


def test_without_a_database_the_embedded_one_is_started_and_made_ready(tmp_path: Path) -> None:
    with Room() as room, room.embedded(durable=True):  # kept running, so that the commands need not start it anew
        ours = {"MENZIL_PG_DIR": str(room.data_dir)}
        assert typed(ours, "channel", "set", "work", cwd=tmp_path).returncode == 0
        sent = typed(ours, "send", "work", '{"a": 1}', cwd=tmp_path)
        assert (sent.returncode, sent.stdout) == (0, "1\n")
        assert sent.stderr.startswith("The embedded PostgreSQL in ")
        assert len(sent.stderr.splitlines()) == 1


def test_a_place_that_cannot_be_had_is_answered_with_an_option_that_the_command_has(tmp_path: Path) -> None:
    told = typed({"MENZIL_PG_DIR": "/dev/null/here"}, "doctor", cwd=tmp_path)
    assert told.returncode == 2
    assert "Hint: choose another directory with MENZIL_PG_DIR, or --data-dir of `menzil pg`; or set" in told.stderr


def test_a_letter_that_the_terminal_cannot_show_ends_nothing(user: User) -> None:
    sent = user.gets("send", "work", '{"name": "İstanbul ☃"}')
    western = {"MENZIL_DSN": user.dsn, "PYTHONIOENCODING": "iso8859-1"}
    shown = typed(western, "message", "show", sent)
    assert shown.returncode == 0, shown.stderr
    assert r"\u0130stanbul \u2603" in shown.stdout


def test_errors_leave_standard_output_alone(user: User) -> None:
    answer = typed({"MENZIL_DSN": user.dsn}, "send", "nowhere", "1")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.startswith("Error: There is no channel or endpoint named 'nowhere'.\nHint: ")


def test_a_disk_that_is_full_is_one_sentence(user: User) -> None:
    with open("/dev/full", "w") as full:
        environment = os.environ | {"MENZIL_DSN": user.dsn}
        command = [*MENZIL, "channel", "list"]
        told = subprocess.run(command, env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert told.returncode == 2
    assert told.stderr == "Error: The output cannot be written: No space left on device.\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["channel list --json", "dlq redrive --all --yes", "top --once"])
def test_a_command_without_a_standard_stream_does_its_work(user: User, words: str, closed: str) -> None:
    environment = os.environ | {"MENZIL_DSN": user.dsn}
    line = f"exec {' '.join(MENZIL)} {words} {closed}"
    done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_a_worker_without_standard_streams_delivers(user: User, tmp_path: Path) -> None:
    """Some programs start daemons with these closed; a connection must not get their numbers."""
    (tmp_path / "shop.py").write_text(
        "import menzil\napp = menzil.Worker()\n@app.handler('work')\ndef work(message):\n    print('done')\n"
    )
    sent = user.gets("send", "work", "1")
    line = f"exec {' '.join(MENZIL)} worker shop:app --once <&- >&- 2>&-"
    environment = os.environ | {"MENZIL_DSN": user.dsn}
    ended = subprocess.run(["sh", "-c", line], env=environment, cwd=tmp_path, timeout=60, check=False)
    assert ended.returncode == 0
    assert user.reads("message", "show", sent)["status"] == "completed"
