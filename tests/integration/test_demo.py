"""The demo: it tells the truth, or says that it does not."""

from __future__ import annotations

import base64
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from standardwebhooks import Webhook

from examples.demo import __main__ as demo
from examples.demo import history
from examples.demo.book import Book, counted
from examples.demo.crew import ROOT
from examples.demo.partner import Partner
from examples.demo.stage import Stage, UntrueError
from examples.demo.webhooks import endpoint
from menzil import Menzil
from menzil.embedded import Embedded

# What the second half of the story has to tell, a line per scene.
TOLD = (
    r"metadata +\[PERMANENT\] 169\.254\.169\.254 is a metadata address",
    r"connections the receiver saw: 0",
    r"signatures verified: 3",
    r"attempt 3, .* → 200",
    r"answered 429, Retry-After 1; 4 requests follow after 1\.",
    r"\[PERMANENT\] \[DISABLE\] HTTP 410 Gone",
    r"No complete answer within \d s \(reading the response\)",
    r"10 messages, 10 requests, all answered 503: circuit open",
    r"then one probe",
    r"a seventh is refused: The payload of event 'order\.paid' breaks the rule",
    r"two bridges took 2 records; run again they took 0",
    r"stopped handed_back=4",
    r"the receiver got 4 of 4 messages twice",
    r"catalogue 2 \(by its cause\), sleeper 3, dripper 3, old-partner 1",
    r"a dry run: 40 messages would go; waiting now: 0",
    r"metrics: queue_depth 0, in_flight 0",
    r"export: 5,\d+ messages in \d+ files, each read back and compared before it counts",
    r"verify: 5,\d+ messages, .* equal PostgreSQL's; 0 problems",
    r"8 causes of dead letters, 1 circuit that opened: build/demo/report\.html",
    r"audit: 14 promises checked on 5,\d+ ended messages and 5,\d+ acknowledged ids",
    r"no limit exceeded: 0 violations",
    r"plan: 4 messages would go to gateway; waiting now: 0",
    r"delivered by a worker; the same run again sends 0",
    r"the receiver's own record: \d+ requests, 117 messages accepted, 4 of them twice",
    r"the report of all this: build/demo/report\.html",
)


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
@pytest.mark.timeout(900)  # a minute alone, several beside a busy machine
def test_the_demo_tells_a_story_that_adds_up_and_leaves_nothing_behind_but_its_lake_and_its_page() -> None:
    with tempfile.TemporaryDirectory(prefix="mz-", dir="/tmp") as place:
        Path(place).chmod(0o711)
        scratch, here = Path(place) / "tmp", Path(place) / "here"
        scratch.mkdir()
        here.mkdir()
        scratch.chmod(0o711)
        began = time.monotonic()
        path = os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))
        done = subprocess.run(
            [sys.executable, "-m", "examples.demo"],
            env={**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": path}, cwd=here,
            capture_output=True, text=True, timeout=880, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), f"{done.stdout}\nafter {time.monotonic() - began:.0f} s"
        assert list(scratch.iterdir()) == []
        assert {path.name for path in (here / "build" / "demo").iterdir()} == {"lake", "report.html"}
        assert [path.name for path in here.iterdir()] == ["build"]
        assert "<svg" in (here / "build" / "demo" / "report.html").read_text()
    assert "\033" not in done.stdout
    assert done.stdout.count("Nothing was lost.") == 2  # neither with the server nor with the worker
    for line in TOLD:
        assert re.search(line, done.stdout), f"{line}\n{done.stdout}"
    figures = re.findall(r"^    all +(.*)$", done.stdout, re.M)[0].replace(".", "0").replace(",", "").split()
    sent, redriven, replayed, *ended = map(int, figures)
    assert (redriven, replayed) == (9, 44)
    assert sent + redriven + replayed == sum(ended)
    assert re.findall(r"^ *(\d+)  \S", done.stdout, re.M) == [str(number + 1) for number in range(len(demo.SCENES) + 1)]


def test_without_the_extra_the_demo_says_so_in_a_sentence_and_ends_well(
    borrowed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SCENES", (history.exported, history.looked, history.replayed))
    assert demo.main() == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "left out: PySpark is not installed. To see it, run `pip install 'menzil[spark]'`.\n" in said.out
    assert said.out.count("left out") == 1
    assert "the report of all this" not in said.out
    assert list(tmp_path.iterdir()) == []


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


def test_a_delivery_that_the_receiver_knows_nothing_of_ends_the_demo_with_one(
    borrowed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scene(stage: Stage) -> None:
        endpoint(stage, "letters")
        stage.book.sent("letters", stage.mq.send("letters", "never delivered"))
        stage.mq.complete(stage.take("letters"))

    monkeypatch.setattr(demo, "SCENES", (scene,))
    assert demo.main() == 1
    assert "message 1 to letters is completed, and the receiver never accepted it" in capsys.readouterr().err


def test_a_delivery_that_only_the_receiver_knows_of_ends_the_demo_with_one(
    borrowed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def scene(stage: Stage) -> None:
        letter = urllib.request.Request(stage.partner.url("/letters"), b"{}", {"Webhook-Id": "msg_1_a"})
        with urllib.request.urlopen(letter) as response:
            assert response.status == 200

    monkeypatch.setattr(demo, "SCENES", (scene,))
    assert demo.main() == 1
    assert "message 1 was accepted by the receiver, and is not completed" in capsys.readouterr().err


def test_the_receiver_believes_the_reference_library_and_nobody_else() -> None:
    secret, forged = ("whsec_" + base64.b64encode(bytes([n]) * 32).decode() for n in (1, 2))
    with closing(Partner()) as partner:
        partner.expect_signature("/desk", secret)
        for signer in (secret, forged):
            now, body = datetime.now(UTC), '{"a": 1}'
            headers = {
                "Webhook-Id": "msg_1_a",
                "Webhook-Timestamp": str(int(now.timestamp())),
                "Webhook-Signature": Webhook(signer).sign("msg_1_a", now, body),
            }
            urllib.request.urlopen(urllib.request.Request(partner.url("/desk"), body.encode(), headers)).close()
        assert [request.signed for request in partner.requests("/desk")] == [True, False]


def test_receiver_and_workers_end_with_the_demo_when_a_claim_is_not_true(
    borrowed: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[Stage] = []

    def scene(stage: Stage) -> None:
        seen.append(stage)
        endpoint(stage, "letters")
        stage.mq.set_setting("http_allow_internal_urls", True)
        stage.partner.play("/letters", then={"hold": True})
        stage.crew.start("clerk")
        stage.mq.send("letters", "to somebody who does not answer")
        stage.until(lambda: stage.partner.held("/letters"), "the clerk delivers")
        stage.check(False, "the clerk is on strike")

    monkeypatch.setattr(demo, "SCENES", (scene,))
    assert demo.main() == 1
    said = capsys.readouterr().err
    assert "the clerk is on strike" in said
    assert "clerk: " in said, "the log of the worker helps to find out why"
    assert seen[0].crew.hands[0].process.returncode is not None
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", seen[0].partner.port), timeout=5)


def test_receiver_and_workers_end_when_the_demo_is_killed(server: Embedded, db: str) -> None:
    program = """
import sys, time
from examples.demo.crew import Crew
from examples.demo.partner import Partner
hand = Crew(sys.argv[1]).start("orphan")
partner = Partner()
while not hand.said("started"):
    time.sleep(0.01)
print(hand.pid, partner.port, flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", program, db], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        pid, port = map(int, parent.stdout.readline().split())
        parent.kill()
    deadline = time.monotonic() + 60
    while alive(pid) or listens(port):
        assert time.monotonic() < deadline, "they are still there"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text() if Path("/proc/self/stat").exists() else ") R"
    except (ProcessLookupError, FileNotFoundError):
        return False
    return not stat.rpartition(")")[2].startswith(" Z")  # an orphan nobody has looked after yet is dead, too


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


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
            ["channel", "sent", "redriven", "replayed", "completed", "failed", "expired", "cancelled"],
            ["letters", "2", ".", ".", "1", ".", ".", "1"],
            ["all", "2", ".", ".", "1", ".", ".", "1"],
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
            "message 2 should be letters, sent, completed, and is letters, sent, cancelled",
            "message 3 was never sent, and is there",
            "message 99 of letters is lost",
        ]


def test_a_redriven_or_replayed_message_has_to_be_in_the_book_as_such(mq: Menzil) -> None:
    book = Book()
    dead = mq.send("letters", "a")
    book.sent("letters", dead, end="failed")
    mq.fail(mq.dequeue()[0], "no such street", permanent=True)
    assert book.dead() == 1
    with psycopg.connect(mq.dsn) as conn:
        ((letter,),) = conn.execute("select id from menzil.dlq").fetchall()
        redriven = mq.redrive_message(letter)
        mq.complete(mq.dequeue()[0])
        replayed = mq.replay_message(redriven)
        mq.complete(mq.dequeue()[0])
        assert sorted(book.differences(conn)) == [
            f"message {redriven} was never sent, and is there",
            f"message {replayed} was never sent, and is there",
        ]
        book.sent("letters", redriven, origin="redriven")
        book.sent("letters", replayed)
        wanted = f"message {replayed} should be letters, sent, completed, and is letters, replayed, completed"
        assert book.differences(conn) == [wanted]
        assert book.dead() == 0


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
