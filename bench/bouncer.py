"""A PgBouncer in transaction mode in front of a database."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

PATH = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
_PARTS = ("host", "port", "dbname", "user", "password")


@contextmanager
def pooled(dsn: str) -> Iterator[str]:
    """The DSN of the same database behind the pooler."""
    assert PATH is not None
    parts = conninfo_to_dict(dsn)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="mz-") as name, tempfile.TemporaryFile() as log:
        place = Path(name)
        place.chmod(0o755)
        config = place / "pgbouncer.ini"
        config.write_text(
            f"[databases]\nbench = {' '.join(f'{part}={parts[part]}' for part in _PARTS if part in parts)}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = transaction\ndefault_pool_size = 10\n"
        )
        user = ["-u", "nobody"] if os.getuid() == 0 else []  # it refuses to be root
        process = subprocess.Popen([PATH, *user, str(config)], stdout=log, stderr=log)
        try:
            pooled = f"host=127.0.0.1 port={port} dbname=bench user=anybody"
            _wait(process, pooled)
            yield pooled
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], dsn: str) -> None:
    ends = time.monotonic() + 10
    while True:
        try:
            psycopg.connect(dsn, prepare_threshold=None).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > ends:
                raise
            time.sleep(0.02)
        else:
            return
