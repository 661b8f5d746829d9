"""The server goes away below clients and consoles that are open, and comes back."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import menzil
from menzil.client import pool
from menzil.console import Access, Console, shared
from menzil.install import migrate
from tests.console.seat import served
from tests.memory import MEMORY
from tests.strangers.test_failovers import BIN, Pair

pytestmark = [
    pytest.mark.skipif(not (BIN / "pg_ctl").exists(), reason=f"{BIN} has no pg_ctl"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def server() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="mz-", dir=MEMORY, ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        running = Pair(Path(place))
        try:
            migrate(running.dsn)
            yield running
        finally:
            running.stop()


@pytest.fixture
def attempts(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often pools tried to connect in vain. After two attempts a pool that backs off tries again in 5 minutes."""
    monkeypatch.setattr("psycopg_pool.base.AttemptWithBackoff.DELAY_BACKOFF", 1000.0)
    caplog.set_level(logging.WARNING, "psycopg.pool")
    return lambda: sum(record.msg.startswith("error connecting") for record in caplog.records)


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not found():
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.05)


@pytest.mark.parametrize("timeout", [1, 120])
def test_client_notices_that_the_server_is_back(
    server: Pair, attempts: Callable[[], int], monkeypatch: pytest.MonkeyPatch, timeout: int
) -> None:
    """One whose calls wait for a second each, and one with a call that waits all the time."""
    monkeypatch.setattr(pool, "ASK_AGAIN", 1.0)
    with menzil.Menzil(server.dsn, max_connections=1, timeout=timeout) as mq:
        mq.channel_set("work")
        sent = list[int]()

        def send() -> None:
            while not sent:
                try:
                    sent.append(mq.send("work", {}))
                except menzil.ConnectionFailedError:
                    time.sleep(0.05)

        thread = threading.Thread(target=send, daemon=True)
        server.stop()
        try:
            thread.start()
            until(lambda: attempts() >= 2)
        finally:
            server.start()
        until(lambda: bool(sent))
        thread.join(60)


def test_open_page_says_that_the_server_is_away_and_notices_that_it_is_back(
    server: Pair, attempts: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "SHARE", 1e9)
    monkeypatch.setattr("menzil.console.database.FORGOTTEN", 3600.0)  # a busy machine may take long between two looks
    with served(Console(server.dsn, local=Access.admin("ada"))) as browser:

        def said(path: str) -> str:
            answer = browser.get(path, X_Menzil_Live="1")
            assert answer.status == 200
            assert "connections were busy" not in answer.words
            return answer.words

        paths = ("/", "/channels", "/plans", "/workers")
        assert all("cannot be reached" not in said(path) for path in paths)
        server.stop()
        try:
            until(lambda: all("The server cannot be reached" in said(path) for path in paths))
            until(lambda: attempts() >= 2 and "The server cannot be reached" in said("/channels"))
            for path in paths:
                assert "The server cannot be reached" in browser.get(path).words, "what was known before is not shown"
            assert browser.get("/healthz").status == 503
        finally:
            server.start()
        until(lambda: not any("cannot be reached" in said(path) or "left out" in said(path) for path in paths))
        assert browser.get("/healthz").status == 200


def test_page_that_is_opened_long_after_an_outage_does_not_tell_of_it(
    server: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No page was open meanwhile. Of the parts of the first page none may say what only the others would find out."""
    console = Console(server.dsn, local=Access.admin("ada"))
    monkeypatch.setattr("menzil.console.database.FORGOTTEN", 3600.0)
    with served(console) as browser:
        assert "cannot be reached" not in browser.get("/").words
        server.stop()
        try:
            until(lambda: "cannot be reached" in browser.get("/", X_Menzil_Live="1").words)
        finally:
            server.start()
        assert console.desk.database.down is not None
        monkeypatch.setattr("menzil.console.database.FORGOTTEN", -60.0)
        assert console.desk.database.down is None
        console.desk.forget()
        assert "cannot be reached" not in browser.get("/").words
