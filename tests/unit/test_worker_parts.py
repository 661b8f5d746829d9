"""Parts of a worker without a database: protocols, the bell, log lines, the command line."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import menzil
from menzil.cli import main
from menzil.cli.worker import _commands
from menzil.deliver.protocol import Surroundings
from menzil.deliver.registry import BUILT_IN, Protocols, UnknownProtocolError
from menzil.worker.log import FLOOD, Hide, Log
from menzil.worker.wake import Bell, Wake

PIGEON = """
class Pigeon:
    def __init__(self, surroundings): self.surroundings = surroundings
    def refresh(self, surroundings): self.surroundings = surroundings
    async def close(self): self.surroundings = None

def broken(surroundings): raise RuntimeError("no wings")
"""


@pytest.fixture
def pigeons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed package that brings a protocol along, and one that cannot be used."""
    (tmp_path / "pigeons.py").write_text(PIGEON)
    info = tmp_path / "pigeons-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeons\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[menzil.protocols]\npigeon = pigeons:Pigeon\ndodo = pigeons:broken\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "pigeons", raising=False)


@pytest.mark.usefixtures("pigeons")
def test_a_package_brings_a_protocol_along() -> None:
    protocols = Protocols(Surroundings({}, "w"))
    pigeon = protocols.get("pigeon")
    assert protocols.get("pigeon") is pigeon
    changed = Surroundings({"a": "b"}, "w")
    protocols.refresh(changed)
    assert pigeon.surroundings is changed  # type: ignore[attr-defined]
    asyncio.run(protocols.close())
    assert pigeon.surroundings is None  # type: ignore[attr-defined]


@pytest.mark.usefixtures("pigeons")
def test_a_protocol_that_cannot_be_used_says_why() -> None:
    protocols = Protocols(Surroundings({}, "w"))
    for _ in range(2):
        with pytest.raises(UnknownProtocolError, match="dodo cannot be used by this worker: RuntimeError: no wings"):
            protocols.get("dodo")


@pytest.mark.usefixtures("pigeons")
def test_an_unknown_protocol_says_which_are_known() -> None:
    with pytest.raises(
        UnknownProtocolError, match="'carrier'; it knows " + ", ".join(sorted({*BUILT_IN, "dodo", "pigeon"}))
    ):
        Protocols(Surroundings({}, "w")).get("carrier")


def test_a_ring_between_asking_and_waiting_is_not_lost() -> None:
    async def story() -> None:
        wake, bell = Wake(None), Bell()
        wake.bells.append(bell)
        heard = bell.count
        wake.ring()
        assert await bell.wait(heard, 60)
        assert not await bell.wait(bell.count, 0.001)
        waiting = [asyncio.create_task(bell.wait(bell.count, 60)) for _ in range(2)]
        await asyncio.sleep(0)
        wake.ring()
        assert await asyncio.gather(*waiting) == [True, True]

    asyncio.run(story())


def test_a_log_line_is_an_event_and_its_facts(caplog: pytest.LogCaptureFixture) -> None:
    log = Log(Hide(["s3cret"]))
    with caplog.at_level(logging.INFO, "menzil.worker"):
        log.info("failed", channel="emails", id=7, reason='it said "no"\nand s3cret', nothing=None)
    assert caplog.messages == ['failed channel=emails id=7 reason="it said \\"no\\"\\nand ********"']


def test_a_flood_of_events_is_counted_not_repeated(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("menzil.worker.log.time.monotonic", lambda: now)
    log = Log(Hide())
    with caplog.at_level(logging.INFO, "menzil.worker"):
        for _ in range(FLOOD + 30):
            log.info("failed")
        now += 1
        log.info("failed")
    assert len(caplog.messages) == FLOOD + 2
    assert caplog.messages[-2:] == ["failed more=30", "failed"]


def test_importing_menzil_does_not_import_the_worker() -> None:
    code = "import sys, menzil; print('menzil.worker' in sys.modules, menzil.Worker, 'menzil.worker' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False <class 'menzil.worker.app.Worker'> True\n"
    with pytest.raises(AttributeError):
        menzil.Nothing  # noqa: B018


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("nothing", "does not name a worker"),
        ("not_there:app", "There is no module 'not_there'"),
        ("json:app", "has no 'app'"),
        ("json:dumps", "is a function, not a menzil.Worker"),
    ],
)
def test_a_program_that_is_not_there_is_one_sentence(argument: str, said: str) -> None:
    result = CliRunner().invoke(main, ["worker", argument])
    assert result.exit_code == 2
    assert said in result.output


@pytest.mark.parametrize(
    ("argument", "hint"),
    [
        ("kiosk:ap", "write kiosk:app or kiosk:night"),
        ("kiosk:mq", "write kiosk:app or kiosk:night"),
        ("json:app", "json has no worker: write `app = menzil.Worker()` there"),
    ],
)
def test_a_misspelled_worker_is_answered_with_those_of_its_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argument: str, hint: str
) -> None:
    (tmp_path / "kiosk.py").write_text(
        "import menzil\nmq = menzil.Menzil('dbname=x')\napp, night = menzil.Worker(), menzil.Worker()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    result = CliRunner().invoke(main, ["worker", argument])
    assert result.exit_code == 2
    assert hint in result.output


@pytest.mark.parametrize("argument", ["./shop/tasks.py:app", "shop/tasks:app", "./shop/tasks.py", ".shop.tasks:app"])
def test_a_path_to_a_program_is_answered_with_its_module(argument: str) -> None:
    result = CliRunner().invoke(main, ["worker", argument])
    assert result.exit_code == 2
    assert "such as shop.tasks:app" in result.output


def test_children_get_the_command_line_of_their_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    line = ["menzil", "worker", "shop:app", "--processes", "2", "--lease", "5", "--name=w", "--once"]
    monkeypatch.setattr(sys, "argv", line)
    common = ["-m", "menzil", "worker", "shop:app", "--lease", "5", "--once"]
    assert _commands(2, "w", None) == [[*common, "--name", "w-1"], [*common, "--name", "w-2"]]
    assert _commands(2, None, None) == [common, common]
    assert _commands(2, None, 9100) == [[*common, "--metrics-port", "9100"], [*common, "--metrics-port", "9101"]]
