"""A PgBouncer in transaction mode in front of a database."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.acceptance.crew import until

PGBOUNCER = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


@contextmanager
def pooler(dsn: str) -> Iterator[str]:
    """Start one with three server connections, and lend the DSN that leads through it."""
    assert PGBOUNCER is not None
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = ("host", "port", "dbname", "user", "password")
    target = " ".join(f"{name}={parts[name]}" for name in names if name in parts)
    with tempfile.TemporaryDirectory(prefix="mzb-") as place:
        Path(place).chmod(0o755)
        config, log = Path(place, "pgbouncer.ini"), Path(place, "log")
        config.write_text(
            f"[databases]\nshop = {target}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = transaction\ndefault_pool_size = 3\nserver_round_robin = 1\nserver_reset_query =\n"
            # What libpq adds on request; a pooler that does not know it refuses the connection.
            "ignore_startup_parameters = extra_float_digits\n"
        )
        config.chmod(0o644)
        command = [PGBOUNCER, *(["-u", "nobody"] if os.getuid() == 0 else []), str(config)]  # it refuses to be root
        with log.open("wb") as said:
            process = subprocess.Popen(command, stdout=said, stderr=said)
            try:
                through = f"host=127.0.0.1 port={port} dbname=shop user=anybody"
                until(lambda: _answers(process, through, log), "the pooler")
                yield through
            finally:
                process.terminate()
                process.wait()


def _answers(process: subprocess.Popen[bytes], dsn: str, log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    try:
        psycopg.connect(dsn, prepare_threshold=None).close()
    except psycopg.OperationalError:
        return False
    return True
