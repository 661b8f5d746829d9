"""Who gets the page with the metrics, and what the commands that print and serve it say."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

import menzil
from menzil.telemetry.serving import Listen, Served, new_token
from tests.telemetry.scraped import OPENMETRICS, count_now, series, value

HOST = "127.0.0.1"


@contextmanager
def served(listen: Listen) -> Iterator[Served]:
    page = Served(listen, lambda accept: (f"text/plain; asked={accept}", b"menzil_up 1\n"))
    try:
        yield page
    finally:
        page.close()


def get(port: int, path: str = "/metrics", method: str = "GET", **headers: str) -> tuple[int, str, bytes]:
    conn = http.client.HTTPConnection(HOST, port, timeout=60)
    try:
        conn.request(method, path, headers=headers)
        answer = conn.getresponse()
        return answer.status, answer.getheader("content-type", ""), answer.read()
    finally:
        conn.close()


def test_this_machine_gets_the_page_without_a_token() -> None:
    with served(Listen(0)) as page:
        assert get(page.port, accept="x") == (200, "text/plain; asked=x", b"menzil_up 1\n")
        assert get(page.port, "/metrics?a=b")[0] == 200
        assert get(page.port, method="HEAD")[2] == b""
        assert get(page.port, "/")[0] == 404
        assert get(page.port, "/metrics/../etc/passwd")[0] == 404
        assert get(page.port, method="POST")[0] == 501


@pytest.mark.parametrize("name", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_only_points_to_this_machine_gets_nothing(name: str) -> None:
    with served(Listen(0)) as page:
        assert get(page.port, Host=name)[0] == 400
        for good in ("localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:5"):
            assert get(page.port, Host=good)[0] == 200


def test_whoever_has_the_token_gets_the_page() -> None:
    token, digest = new_token()
    with served(Listen(0, HOST, digest)) as page:
        assert get(page.port, Host="metrics.example", Authorization=f"Bearer {token}")[0] == 200
        for wrong in ("", "Bearer", f"Bearer {digest}", f"Basic {token}", f"Bearer {token}x", "Bearer \xff"):
            assert get(page.port, Authorization=wrong)[0] == 401
        assert get(page.port)[0] == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_nobody_shows_the_metrics_to_everybody(host: str) -> None:
    with pytest.raises(menzil.UsageError, match="no token"):
        Listen(0, host)
    Listen(0, host, "a" * 64)


@pytest.mark.parametrize("digest", ["", "secret", "A" * 64, "a" * 63])
def test_a_token_in_place_of_its_digest_is_refused_and_not_repeated(digest: str) -> None:
    with pytest.raises(menzil.UsageError) as refused:
        Listen(0, HOST, digest)
    assert not digest or digest not in str(refused.value)


def test_a_port_that_is_taken_is_refused_in_words() -> None:
    with served(Listen(0)) as page, pytest.raises(menzil.UsageError, match="cannot be served at"):
        Served(Listen(page.port), lambda accept: ("", b""))


def test_a_client_that_says_nothing_holds_up_nobody() -> None:
    with served(Listen(0)) as page:
        silent = [socket.create_connection((HOST, page.port)) for _ in range(20)]
        try:
            assert get(page.port)[0] == 200
        finally:
            for one in silent:
                one.close()


def command(*words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    full = [sys.executable, "-m", "menzil", *words]
    return subprocess.run(full, capture_output=True, text=True, timeout=60, env={**os.environ, **(env or {})})


def test_the_command_prints_what_prometheus_reads(db: str, mq: menzil.Menzil) -> None:
    mq.send("billing", {})
    count_now(db)
    done = command("metrics", "--prometheus", "--dsn", db)
    assert done.returncode == 0, done.stderr
    found = series(done.stdout.encode())
    assert value(found, "menzil_messages_sent_total", channel="billing") == 1


def test_ways_to_print_exclude_each_other() -> None:
    done = command("metrics", "--prometheus", "--json")
    assert done.returncode == 2
    assert "choose one" in done.stderr


def test_a_missing_client_is_one_sentence_and_the_line_that_installs_it(db: str, tmp_path: Any) -> None:
    (tmp_path / "prometheus_client.py").write_text("raise ModuleNotFoundError(name='prometheus_client')")
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    for words in (("metrics", "--prometheus"), ("metrics", "--serve"), ("worker", "--once", "--metrics-port", "0")):
        done = command(*words, "--dsn", db, env=env)
        assert done.returncode == 2
        assert 'pip install "menzil[metrics]"' in done.stderr
        assert "Traceback" not in done.stderr
    assert command("metrics", "--dsn", db, env=env).returncode == 0


@contextmanager
def running(*words: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A command that serves, and its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "menzil", *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/metrics", line):
                yield process, int(found[1])
                break
        else:
            raise AssertionError("".join(said))
    finally:
        process.kill()
        process.wait(60)


def test_the_command_serves_until_it_is_told_to_stop(db: str, mq: menzil.Menzil) -> None:
    token = command("metrics", "--new-token").stdout.split()
    mq.send("billing", {})
    count_now(db)
    with running("metrics", "--serve", "--port", "0", "--token", token[1], "--dsn", db) as (process, port):
        assert get(port)[0] == 401
        status, content_type, body = get(port, Authorization=f"Bearer {token[0]}", Accept=OPENMETRICS)
        assert status == 200
        assert content_type.startswith("application/openmetrics-text")
        assert value(series(body, openmetrics=True), "menzil_messages_sent_total", channel="billing") == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.slow
def test_a_served_page_survives_the_end_of_its_connection(db: str, mq: menzil.Menzil) -> None:
    others = "datname = current_database() and pid <> pg_backend_pid()"
    with running("metrics", "--serve", "--port", "0", "--dsn", db) as (_, port):
        assert value(series(get(port)[2]), "menzil_up") == 1
        with psycopg.connect(db, autocommit=True) as conn:
            conn.execute(f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")
        for up in (0, 1):  # answers are kept for five seconds
            while value(series(get(port)[2]), "menzil_up") != up:
                assert get(port)[0] == 200


def test_a_worker_serves_its_own_numbers(
    db: str, mq: menzil.Menzil, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop.py").write_text(
        "import menzil\n"
        "app = menzil.Worker(endpoints=False, janitors=False)\n"
        "@app.handler('billing')\n"
        "async def bill(message):\n"
        "    return menzil.Fail('no', retry=60) if message.payload == 'fail' else None\n"
    )
    mq.send_batch("billing", ["ok", "ok", "fail"])
    monkeypatch.chdir(tmp_path)
    with running("worker", "shop:app", "--dsn", db, "--metrics-port", "0") as (process, port):
        found: Any = {}
        while value(found, "menzil_worker_settles_total", result="failed") != 1:
            found = series(get(port)[2])
        while value(found, "menzil_worker_settles_total", result="completed") != 2:
            found = series(get(port)[2])
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert value(found, "menzil_worker_leases_total") == 3
    assert value(found, "menzil_worker_reconnects_total") == 0
    assert value(found, "menzil_wait_seconds_count", channel="billing") == 3
    assert value(found, "menzil_worker_poll_seconds_count") >= 1
    assert value(found, "process_resident_memory_bytes") > 1e6
    assert value(found, "python_gc_collections_total", generation="0") is not None


def test_each_process_of_a_family_has_a_port_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from menzil.cli.worker import _commands

    line = ["menzil", "worker", "--processes", "2", "--metrics-port=9000", "--name", "w", "shop:app"]
    monkeypatch.setattr(sys, "argv", line)
    assert [words[2:] for words in _commands(2, "w", 9000)] == [
        ["worker", "shop:app", "--name", "w-1", "--metrics-port", "9000"],
        ["worker", "shop:app", "--name", "w-2", "--metrics-port", "9001"],
    ]
    assert [words[-1] for words in _commands(2, "w", 0)] == ["0", "0"]
