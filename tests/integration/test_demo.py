"""The demo: it tells the truth, or says that it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from menzil import Menzil
from menzil.demo import __main__ as demo
from menzil.demo.book import Book, counted
from menzil.demo.stage import Stage, UntrueError
from menzil.embedded import Embedded


class Borrowed(Embedded):
    """The server of the tests with a database of its own, in the place of the one a demo would start."""

    server: Embedded
    address: str

    def start(self, *, timeout: float = 120.0) -> Borrowed:
        return self

    def close(self, *, wait: float = 0.0) -> None:
        pass

    @property
    def dsn(self) -> str:
        return self.address

    @property
    def port(self) -> int:
        return self.server.port

    @property
    def version(self) -> str:
        return self.server.version


@pytest.fixture
def mq(db: str) -> Iterator[Menzil]:
    with Menzil(db) as client:
        client.channel_set("letters")
        yield client


@pytest.fixture
def borrowed(server: Embedded, fresh_db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Borrowed, "server", server, raising=False)
    monkeypatch.setattr(Borrowed, "address", fresh_db, raising=False)
    monkeypatch.setattr(demo, "Embedded", Borrowed)


@pytest.mark.slow
def test_the_demo_tells_a_story_that_adds_up_and_leaves_nothing_behind() -> None:
    with tempfile.TemporaryDirectory(prefix="mz-", dir="/tmp") as place:
        Path(place).chmod(0o711)
        environ = {**os.environ, "TMPDIR": place}
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "menzil.demo"], env=environ, capture_output=True, text=True, timeout=240, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), f"{done.stdout}\nafter {time.monotonic() - began:.0f} s"
        assert list(Path(place).iterdir()) == []
    assert "\033" not in done.stdout
    assert "Nothing was lost." in done.stdout
    sent, *ended = [int(cell.replace(",", "")) for cell in re.findall(r"^    all +(.*)$", done.stdout, re.M)[0].split()]
    assert sent == sum(ended)
    assert re.findall(r"^ *(\d+)  \S", done.stdout, re.M) == [str(number + 1) for number in range(len(demo.SCENES) + 1)]


def test_a_claim_that_is_not_true_ends_the_demo_with_one(
    borrowed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "SCENES", (lambda stage: stage.check(False, "two and two are five"),))
    assert demo.main() == 1
    assert "This should be so, and is not: two and two are five." in capsys.readouterr().err


def test_a_message_that_is_missing_from_the_accounts_ends_the_demo_with_one(
    borrowed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scene(stage: Stage) -> None:
        stage.mq.channel_set("letters")
        stage.book.sent("letters", stage.mq.send("letters", "to be forgotten"))

    monkeypatch.setattr(demo, "SCENES", (scene,))
    assert demo.main() == 1
    assert "message 1 of letters is still pending" in capsys.readouterr().err


def test_the_book_agrees_when_everything_ended_as_expected(mq: Menzil) -> None:
    book = Book()
    done, gone = mq.send_batch("letters", ["a", "b"])
    book.sent("letters", done)
    book.sent("letters", gone, end="cancelled")
    mq.cancel(gone)
    mq.complete(mq.dequeue()[0])
    with psycopg.connect(mq.dsn) as conn:
        assert book.differences(conn) == []
        assert [line.split() for line in book.table(conn)] == [
            ["channel", "sent", "completed", "failed", "expired", "cancelled"],
            ["letters", "2", "1", ".", ".", "1"],
            ["all", "2", "1", ".", ".", "1"],
        ]


def test_the_book_notices_what_is_lost_waiting_wrong_or_too_much(mq: Menzil) -> None:
    book = Book()
    waiting, wrong, _ = mq.send_batch("letters", ["a", "b", "c"])
    book.sent("letters", waiting, 99)
    book.sent("letters", wrong)
    mq.cancel(wrong)
    with psycopg.connect(mq.dsn) as conn:
        assert sorted(book.differences(conn)) == [
            "message 1 of letters is still pending",
            "message 2 of letters should be completed, and is cancelled",
            "message 3 was never sent, and is there",
            "message 99 of letters is lost",
        ]


def test_ids_are_told_in_few_words() -> None:
    assert [counted(ids) for ids in ([7], [9, 7], [7, 8, 9], [7, 9, 10])] == ["7", "7, 9", "7 to 9", "7, 9, 10"]


def test_what_must_be_refused_and_is_not_is_untrue(mq: Menzil, server: Embedded) -> None:
    with pytest.raises(UntrueError, match="ValueError"):
        Stage(server, mq).refused(lambda: None, ValueError)


@pytest.mark.parametrize(
    ("terminal", "no_color", "colourful"), [(True, "", True), (True, "1", False), (False, "", False)]
)
def test_colours_are_for_terminals(
    terminal: bool,
    no_color: str,
    colourful: bool,
    mq: Menzil,
    server: Embedded,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    Stage(server, mq).good("done")
    assert ("\033" in capsys.readouterr().out) is colourful
