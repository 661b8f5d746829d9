"""`menzil channel state`, `channel turns`, `pulse` and `completion` as a user types them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import psycopg
import pytest

from menzil import Menzil
from tests.integration.cli.user import User


def test_channels_show_how_they_stand(user: User, mq: Menzil) -> None:
    user.gets("send", "work", "--batch", stdin="1\n2\n3\n")
    user.gets("channel", "set", "full", "--max-concurrency", "1")
    user.gets("send", "full", "1")
    mq.dequeue(channels="full")
    user.gets("channel", "pause", "work")
    rows = {line.split()[0]: line for line in user.gets("channel", "state").splitlines()}
    assert "full 1/1" in rows["full"]
    assert "paused by" in rows["work"]
    found = user.reads("channel", "state", "--held", "--sort", "waiting")
    assert [row["channel"] for row in found["channels"]] == ["work", "full"]
    assert found.keys() == {"channels", "next_after", "as_of"}
    assert "go on with --after full" in user.types("channel", "state", "--limit", "1").stderr
    assert "no such channels" in user.types("channel", "state", "--contains", "zzz").stderr


def test_the_person_who_paused_a_channel_is_named(user: User) -> None:
    user.gets("--actor", "ada", "channel", "pause", "work")
    assert "paused by ada" in user.gets("channel", "state")
    (act,) = [act for act in user.reads("channel", "state", "work")["acts"] if act["what"] == "channel.paused"]
    assert act["actor"].startswith("ada")
    assert act["via"] == "cli"


def test_one_channel_shows_what_comes_next(user: User) -> None:
    sent = user.gets("send", "work", "1")
    said = user.gets("channel", "state", "work")
    assert "\nnext\n" in said
    assert sent in said
    assert [one["id"] for one in user.reads("channel", "state", "work")["next"]] == [int(sent)]
    assert "Did you mean work?" in user.fails("channel", "state", "wrok")


def test_turns_show_the_next_leases_and_take_nothing(user: User, mq: Menzil) -> None:
    assert "No message is due." in user.types("channel", "turns").stderr
    user.gets("channel", "set", "held")
    user.gets("channel", "pause", "held")
    user.gets("send", "held", "1")
    sent = user.gets("send", "work", "1")
    found = user.reads("channel", "turns")
    assert [one["message_id"] for one in found["turns"] if one["channel"] == "work"] == [int(sent)]
    assert [one["channel"] for one in found["skipped"]] == ["held"]
    assert "Passed over: held, paused by" in user.types("channel", "turns").stderr
    assert len(mq.dequeue(5)) == 1


def test_the_pulse_counts_what_passed(user: User, mq: Menzil) -> None:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select menzil._begin_pulse()")
        user.gets("send", "work", "--batch", stdin="1\n2\n3\n")
        mq.complete(mq.dequeue()[0])
        conn.execute("call menzil.run_jobs()")
    said = user.gets("pulse")
    assert said.splitlines()[0].split()[0] == "sent"
    assert said.splitlines()[0].endswith("3, most 3")
    assert "█" in said
    found = user.reads("pulse", "work", "--since", "-30m", "--step", "5m")
    assert (found["channel"], found["step_s"], len(found["points"]) in (6, 7)) == ("work", 300, True)
    assert sum(point["completed"] for point in found["points"]) == 1
    assert "Nothing passed" in user.types("pulse", "--since", "-3d", "--until", "-2d").stderr
    assert "Did you mean work?" in user.fails("pulse", "wrok")
    assert "at least one minute" in user.fails("pulse", "--step", "5s")
    assert "no length" in user.fails("pulse", "--since", "+1h")


def test_a_monitor_may_watch(user: User) -> None:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("create role cli_watcher login password 'x' in role menzil_monitor")
    try:
        sent = user.gets("send", "work", "1")
        watcher = User(psycopg.conninfo.make_conninfo(user.dsn, user="cli_watcher", password="x"))
        for words in (["channel", "state"], ["channel", "turns"], ["pulse"], ["message", "why", sent]):
            watcher.reads(*words)
        watcher.reads("message", "life", sent)
        watcher.reads("top", "--once")
    finally:
        with psycopg.connect(user.dsn, autocommit=True) as conn:
            conn.execute("drop role cli_watcher")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_one_that_the_shell_reads(user: User, shell: str) -> None:
    script = user.gets("completion", shell)
    assert "_MENZIL_COMPLETE" in script
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("menzil mess", "message"),
        ("menzil message ", "why"),
        ("menzil message list --sta", "--status"),
        ("menzil message list --status f", "failed"),
        ("menzil channel state --sort ol", "oldest"),
        ("menzil completion ", "fish"),
    ],
)
def test_completion_offers_commands_options_and_words(typed: str, offered: str) -> None:
    words = typed.split(" ")
    env = {**os.environ, "_MENZIL_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-c", "from menzil.cli import main; main(prog_name='menzil')"]
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert offered in [line.partition(",")[2] for line in answer.stdout.splitlines()]


def test_completing_the_first_word_imports_no_command() -> None:
    env = {**os.environ, "_MENZIL_COMPLETE": "bash_complete", "COMP_WORDS": "menzil ", "COMP_CWORD": "1"}
    told = "import atexit, sys; atexit.register(lambda: print(*sys.modules)); "
    code = f"{told} from menzil.cli import main; main(prog_name='menzil')"
    answer = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "menzil.cli.worker" not in answer.stdout
    assert "plain,worker" in answer.stdout
