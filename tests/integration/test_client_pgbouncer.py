"""Behind a PgBouncer in transaction mode: any call may land on any server connection."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

import menzil

PGBOUNCER = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.fixture
def pooled(db: str, tmp_path: Path) -> Iterator[str]:
    """The DSN of the same database behind a pooler with two server connections."""
    assert PGBOUNCER is not None
    parts = {name: str(value) for name, value in conninfo_to_dict(db).items()}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    target = " ".join(
        f"{name}={parts[name]}" for name in ("host", "port", "dbname", "user", "password") if name in parts
    )
    config = tmp_path / "pgbouncer.ini"
    config.write_text(
        f"[databases]\nshop = {target}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 2\nserver_round_robin = 1\nserver_reset_query =\n"
    )
    command = [PGBOUNCER, str(config)]
    if os.getuid() == 0:  # it refuses to be root
        for path in (tmp_path, *tmp_path.parents[:2]):
            path.chmod(0o755)
        command[1:1] = ["-u", "nobody"]
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        dsn = f"host=127.0.0.1 port={port} dbname=shop user=anybody"
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(dsn, prepare_threshold=None).close()
                break
            except psycopg.OperationalError:
                assert process.poll() is None, (tmp_path / "log").read_text()
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()
                time.sleep(0.02)
        yield dsn
    finally:
        process.terminate()
        process.wait()
        log.close()


def test_everything_works_behind_a_pooler(pooled: str) -> None:
    with menzil.Menzil(pooled, prepare=False) as mq:
        mq.channel_set("billing")
        for number in range(20):  # more often than psycopg would wait before it prepares a statement
            mq.send("billing", number, priority=1)
        assert mq.send_many([menzil.Send("billing", 20, delay=0, ordering_key="k")])
        done = 0
        while batch := mq.dequeue(limit=5):
            mq.complete(batch[0])
            assert all(answer.ok for answer in mq.complete_many(batch[1:]))
            done += len(batch)
        assert done == 21


def test_the_async_client_works_behind_a_pooler(pooled: str) -> None:
    async def story() -> None:
        async with menzil.AsyncMenzil(pooled, prepare=False) as mq:
            await mq.channel_set("billing")
            await asyncio.gather(*(mq.send("billing", number) for number in range(20)))
            batch = await mq.dequeue(limit=100)
            assert len(batch) == 20
            assert all(answer.ok for answer in await mq.complete_many(batch))

    asyncio.run(story())


def test_a_business_transaction_goes_through_the_pooler(pooled: str) -> None:
    with menzil.Menzil(pooled, prepare=False) as mq:
        mq.channel_set("billing")
        with psycopg.connect(pooled, prepare_threshold=None) as conn:
            mq.send("billing", "rolled back", conn=conn)
            conn.rollback()
            mq.send("billing", "committed", conn=conn)
        assert [message.payload for message in mq.dequeue(10)] == ["committed"]


def test_the_client_leaves_no_session_state_behind(pooled: str) -> None:
    with (
        menzil.Menzil(pooled, prepare=False) as mq,
        psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as conn,
    ):
        # The pooler itself passes on the application name of whoever it serves.
        state = (
            "select array_agg(name || '=' || setting order by name) from pg_settings"
            " where source = 'session' and name <> 'application_name'"
        )
        before = [conn.execute(state).fetchone() for _ in range(4)]
        mq.channel_set("billing")
        mq.send_many([menzil.Send("billing", 1)] * 10)
        mq.complete_many(mq.dequeue(10))
        assert [conn.execute(state).fetchone() for _ in range(4)] == before
        assert conn.execute("select count(*) from pg_prepared_statements").fetchone() == (0,)
        assert conn.execute("select pg_listening_channels()").fetchall() == []
