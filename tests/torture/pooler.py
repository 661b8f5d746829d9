"""A PgBouncer in transaction mode, for part of the clients; its own connections go through the proxy."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

PGBOUNCER = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def configure(place: Path, dsn: str, port: int) -> tuple[list[str], str]:
    """Write its configuration. Return its command and the DSN that leads through it."""
    assert PGBOUNCER is not None
    parts = conninfo_to_dict(dsn)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        own = probe.getsockname()[1]
    home = place / "pgbouncer"
    home.mkdir(mode=0o755)
    config = home / "pgbouncer.ini"
    target = f"host=127.0.0.1 port={port} dbname={parts['dbname']} user={parts['user']} password={parts['password']}"
    config.write_text(
        f"[databases]\npooled = {target}\n"
        f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {own}\nunix_socket_dir =\nauth_type = any\n"
        "pool_mode = transaction\ndefault_pool_size = 4\nserver_round_robin = 1\nserver_reset_query =\n"
        "server_login_retry = 0.2\nserver_tls_sslmode = disable\nignore_startup_parameters = extra_float_digits\n"
    )
    config.chmod(0o644)
    return [
        PGBOUNCER,
        "-q",
        str(config),
    ], f"host=127.0.0.1 port={own} dbname=pooled user=anybody sslmode=disable gssencmode=disable"
