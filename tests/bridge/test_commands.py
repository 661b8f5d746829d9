"""`menzil bridge` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

import psycopg
import pytest
import redis

from tests.bridge.stage import PATIENCE, one, waiting
from tests.brokers.servers import Valkey
from tests.brokers.stage import fresh


def menzil(db: str, *words: str, code: int = 0) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "menzil", "bridge", *words],
        capture_output=True,
        text=True,
        env=surroundings(db),
        timeout=60,
    )
    assert done.returncode == code, done.stderr + done.stdout
    return json.loads(done.stdout) if "--json" in words else done.stdout + done.stderr


def surroundings(db: str) -> dict[str, str]:
    return {**os.environ, "MENZIL_DSN": db}


@pytest.mark.slow
def test_a_bridge_is_made_planned_run_and_dropped(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("cli")
    config = json.dumps({"host": "127.0.0.1", "port": valkey.port, "stream": stream})
    client = redis.Redis(port=valkey.port)
    for n in range(3):
        client.xadd(stream, {"payload": str(n), "key": "k"})
    client.xadd(stream, {"payload": "{"})
    assert "There are no bridges" in menzil(db, "list")
    menzil(
        db, "create", "orders", "--protocol", "redis", "--config", config, "--start", "earliest", "--channel", "work"
    )
    planned = menzil(db, "plan", "orders", "--json")
    assert [(row["body"], row["ordering_key"]) for row in planned] == [("0", "k"), ("1", "k"), ("2", "k"), ("{", None)]
    assert waiting(conn) == []
    assert one(conn, "select count(*) from menzil.bridge_positions") == 0
    assert [row["lag"] for row in menzil(db, "lag", "--json")] == [4]
    done = menzil(db, "run", "orders", "--once", "--json", code=1)  # one became a dead letter
    assert done == [{"name": "orders", "taken": 3, "refused": 1, "lost": 0, "paused": False}]
    assert waiting(conn) == [0, 1, 2]
    assert [row["lag"] for row in menzil(db, "lag", "orders", "--json")] == [0]
    assert menzil(db, "show", "orders", "--json")["positions"][0]["taken"] == 3
    menzil(db, "pause", "orders")
    client.xadd(stream, {"payload": "4"})
    none = [{"name": "orders", "taken": 0, "refused": 0, "lost": 0, "paused": True}]
    assert menzil(db, "run", "--once", "--json", code=1) == none
    assert "0 records taken, because it is paused" in menzil(db, "run", "--once", code=1)
    menzil(db, "resume", "orders")
    menzil(db, "seek", "orders", stream, "0-0")
    assert menzil(db, "run", "--once", "--json", code=1)[0]["taken"] == 4
    menzil(db, "alter", "orders", "--config", '{"batch": 10}')
    assert menzil(db, "list", "--json")[0]["config"]["batch"] == 10
    menzil(db, "drop", "orders")
    assert menzil(db, "list", "--json") == []


@pytest.mark.slow
def test_mistakes_are_one_sentence_and_a_hint(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    config = json.dumps({"host": "127.0.0.1", "port": valkey.port, "stream": "s", "start": "earliest"})
    said = menzil(db, "run", "ordres", code=2)
    assert "There is no bridge named 'ordres'." in said
    assert "Hint" in said
    assert "Did you mean" in menzil(db, "runn", code=2)
    wrong = ("create", "b", "--protocol", "redis", "--config", config.replace("stream", "steam"), "--channel", "work")
    assert "'steam' is not a key of the config of a redis bridge." in menzil(db, *wrong, code=2)
    assert "one of the two is needed" in menzil(db, "create", "b", "--protocol", "redis", "--config", config, code=2)
    unsaid = json.dumps({"host": "h", "stream": "s"})
    said = menzil(db, "create", "b", "--protocol", "redis", "--config", unsaid, "--channel", "work", code=2)
    assert "start is needed" in said
    assert "earliest" in said
    assert "reads from amqp, kafka, mqtt, nats, redis" in menzil(
        db, "create", "b", "--protocol", "sqs", "--config", "{}", "--channel", "work", code=2
    )
    gone = ("create", "b", "--protocol", "redis", "--config", config, "--channel", "wrok")
    assert "'wrok'" in menzil(db, *gone, code=2)
    assert conn.execute("select count(*) from menzil.bridges").fetchone() == (0,)


@pytest.mark.slow
def test_a_source_that_is_away_hides_no_other(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    for name, port in (("away", 1), ("there", valkey.port)):
        config = json.dumps({"host": "127.0.0.1", "port": port, "stream": fresh("s"), "start": "earliest"})
        menzil(db, "create", name, "--protocol", "redis", "--config", config, "--channel", "work")
    assert [(row["name"], row["lag"]) for row in menzil(db, "lag", "--json", code=1)] == [("there", 0)]
    assert "Bridge away: Connection refused by 127.0.0.1:1" in menzil(db, "lag", code=1)
    assert "Connection refused" in menzil(db, "lag", "away", code=2)


@pytest.mark.slow
def test_a_process_that_is_told_to_stop_ends_in_good_order(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("cli")
    config = json.dumps({"host": "127.0.0.1", "port": valkey.port, "stream": stream, "start": "earliest"})
    menzil(db, "create", "orders", "--protocol", "redis", "--config", config, "--channel", "work")
    command = [sys.executable, "-m", "menzil", "bridge", "run"]
    process = subprocess.Popen(command, env=surroundings(db), stderr=subprocess.PIPE, text=True)
    try:
        redis.Redis(port=valkey.port).xadd(stream, {"payload": "1"})
        ends = time.monotonic() + PATIENCE
        while waiting(conn) != [1]:
            assert time.monotonic() < ends
            time.sleep(0.02)
        assert one(conn, "select processes from menzil.bridges") == 1
        assert one(conn, "select status from menzil.health_check() where check_name = 'bridges'") == "ok"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "opened bridge=orders" in said
    finally:
        process.kill()
        process.wait()
    assert one(conn, "select processes from menzil.bridges") == 0
    status, detail = one(conn, "select status, detail from menzil.health_check() where check_name = 'bridges'")
    assert (status, detail) == ("warning", "Bridge 'orders' is not run by any process.")
