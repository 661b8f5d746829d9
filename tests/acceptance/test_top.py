"""`menzil top` on a real terminal, with keys, a server that goes away, and without textual."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from menzil import Menzil
from tests.acceptance.crew import until
from tests.acceptance.terminal import Terminal

ALT_SCREEN = b"\x1b[?1049"


@pytest.fixture
def sit(db: str) -> Iterator[Callable[..., Terminal]]:
    """Somebody sits down in front of a terminal."""
    seats: list[Terminal] = []

    def start(*words: str, **env: str) -> Terminal:
        seats.append(Terminal(*words, env={"MENZIL_DSN": db, **env}))
        return seats[-1]

    yield start
    for seat in seats:
        seat.close()


@pytest.fixture
def mq(db: str) -> Iterator[Menzil]:
    with Menzil(db) as client:
        client.channel_set("billing")
        client.send_batch("billing", [{"n": n} for n in range(3)])
        yield client


def test_a_person_walks_from_the_queue_to_a_message_and_leaves(sit: Callable[..., Terminal], mq: Menzil) -> None:
    mq.channel_pause("billing")
    seat = sit("top")
    seat.shows("billing")
    at = seat.press("\r")
    at = seat.shows("channel billing", at)
    at = seat.press("\r")
    seat.shows("channel paused", at)
    seat.press("q")
    assert seat.ends() == 0
    assert seat.raw.count(ALT_SCREEN) == 2, "the screen is given back as it was"


def test_ctrl_c_leaves_too(sit: Callable[..., Terminal], mq: Menzil) -> None:
    seat = sit("top")
    seat.shows("billing")
    seat.press("\x03")
    seat.press("q")
    assert seat.ends() == 0
    assert "Traceback" not in seat.text


def test_a_connection_that_is_cut_comes_back_by_itself(sit: Callable[..., Terminal], mq: Menzil, db: str) -> None:
    seat = sit("top")
    seat.shows("waiting 3")
    with psycopg.connect(db, autocommit=True) as conn:
        cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'menzil-top'"
        assert conn.execute(cut).fetchone() == (1,)
    mq.send_batch("billing", [{}] * 4)
    seat.shows("waiting 7")
    seat.press("q")
    assert seat.ends() == 0


def test_a_simple_terminal_gets_one_table(sit: Callable[..., Terminal], mq: Menzil) -> None:
    seat = sit("top", TERM="dumb")
    assert seat.ends() == 0
    assert "billing" in seat.text
    assert b"\x1b" not in seat.raw


def test_without_textual_frames_are_printed_until_ctrl_c(
    sit: Callable[..., Terminal], mq: Menzil, tmp_path: Path
) -> None:
    # As if the extra were not installed: a finder in front of all others that knows no such package.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'textual':\n"
        "            raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
    )
    seat = sit("top", PYTHONPATH=f"{tmp_path}:{':'.join(sys.path)}")
    seat.shows("pip install 'menzil[top]'")
    at = seat.shows("waiting 3")
    mq.send("billing", {})
    seat.shows("waiting 4", at)
    seat.press("\x03")
    assert seat.ends() == 0
    assert "Traceback" not in seat.text


def test_a_queue_that_is_not_installed_is_a_sentence(fresh_db: str) -> None:
    seat = Terminal("top", env={"MENZIL_DSN": fresh_db})
    try:
        assert seat.ends() == 2
        assert "menzil is not installed" in seat.text
        assert "Traceback" not in seat.text
    finally:
        seat.close()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux_the_screen_reads_as_it_should(mq: Menzil, db: str, tmp_path: Path) -> None:
    socket = str(tmp_path / "tmux")

    def tmux(*words: str) -> str:
        answer = subprocess.run(
            ["tmux", "-S", socket, "-f", "/dev/null", *words], capture_output=True, text=True, check=True
        )
        return answer.stdout

    command = f"env MENZIL_DSN='{db}' PYTHONPATH='{':'.join(sys.path)}' {sys.executable} -m menzil top"
    tmux("new-session", "-d", "-s", "seat", "-x", "150", "-y", "30", command)
    try:
        until(lambda: "billing" in tmux("capture-pane", "-p", "-t", "seat"), "the channel", 60)
        screen = tmux("capture-pane", "-p", "-t", "seat").splitlines()
        assert "waiting 3" in screen[0]
        row = next(line for line in screen if line.lstrip().startswith("billing"))
        assert "no worker serves it" in row
        tmux("send-keys", "-t", "seat", "/", "zzz", "Enter")
        until(lambda: "names with 'zzz'" in tmux("capture-pane", "-p", "-t", "seat"), "the filter")
        assert "billing" not in tmux("capture-pane", "-p", "-t", "seat")
        tmux("send-keys", "-t", "seat", "q")
        ends = time.monotonic() + 60
        while subprocess.run(["tmux", "-S", socket, "has-session", "-t", "seat"], capture_output=True).returncode == 0:
            assert time.monotonic() < ends, "q did not end it"
            time.sleep(0.05)
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], capture_output=True)
