"""The home of one server, `<data dir>/<major version>`: what lies in it and what that says.

::

    data/          the cluster itself (PGDATA), owned by the account that runs the server
    password       of the superuser, 0600
    holders        lock file: every user shares it, the supervisor takes it alone to stop the server
    holders.d/     one locked file per user, so that `menzil pg stop` can say who they are
    supervisor     lock file: held by the supervisor as long as it lives; its pid is inside
    plan           how the supervisor runs the server, as JSON
    port           the last TCP port, taken again where possible so that connection strings stay true
    pinned         present: the server keeps running without users
    stop           present: the supervisor stops the server even while it is used
    failure        why the last start failed, as JSON
    menzil.conf    our settings; written at every start
    server.log     what PostgreSQL says; supervisor.log what its supervisor says

The major version is part of the path, so a newer PostgreSQL never opens an older cluster.
Standard library alone, like everything the supervisor imports.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

# The kernel's limit for the path of a socket, without its closing NUL.
SOCKET_PATH_LIMIT = 107 if sys.platform == "linux" else 103

# "Do you speak TLS?", which every PostgreSQL answers before it asks who we are.
SSL_REQUEST = (8).to_bytes(4, "big") + (80877103).to_bytes(4, "big")


class Server(NamedTuple):
    """A server that accepts connections."""

    pid: int
    port: int


class Home:
    """Reads the files of one home; knows no rules about when they change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self.password = path / "password"
        self.holders = path / "holders"
        self.tags = path / "holders.d"
        self.supervisor = path / "supervisor"
        self.plan = path / "plan"
        self.port = path / "port"
        self.pinned = path / "pinned"
        self.stop = path / "stop"
        self.failure = path / "failure"
        self.settings = path / "menzil.conf"
        self.log = path / "server.log"
        self.supervisor_log = path / "supervisor.log"
        self.postmaster_pid = self.data / "postmaster.pid"
        self.socket_dir = socket_dir(self.data)

    def socket(self, port: int) -> Path:
        return self.socket_dir / f".s.PGSQL.{port}"

    def recorded(self) -> tuple[Server, str] | None:
        """What postmaster.pid says, true or not: pid and port, and a status (empty while it comes up)."""
        try:
            lines = read(self.postmaster_pid).splitlines()
            return Server(int(lines[0]), int(lines[3])), lines[7].strip() if len(lines) > 7 else ""
        except (OSError, ValueError, IndexError):
            return None

    def ready(self) -> Server | None:
        """The server, if it accepts connections.

        The socket decides, not the pid: a pid may belong to a zombie or, after a reboot, to another process, but only a
        living postmaster answers on a socket in a directory that no other account may write to.
        """
        recorded = self.recorded()
        if recorded is None or recorded[1] != "ready" or not answers(self.socket(recorded[0].port)):
            return None
        return recorded[0]

    def has_cluster(self) -> bool:
        """Whether there is a cluster that we may look at."""
        with contextlib.suppress(OSError):
            return (self.data / "PG_VERSION").exists() and (self.data / "global" / "pg_control").exists()
        return False

    def is_durable(self) -> bool:
        """Whether the server was last started with its writes made safe (PostgreSQL keeps its own command line)."""
        with contextlib.suppress(OSError):
            return "fsync=off" not in read(self.data / "postmaster.opts")
        return True


def socket_dir(data: Path) -> Path:
    """The directory of the server's socket: the data directory, or a short one when the kernel could not name it."""
    name = os.fsencode(data)
    longest = len(name) + len("/.s.PGSQL.65535")
    # libpq and PostgreSQL read both directories as lists: a comma would end the name, a quote begin one.
    if longest <= SOCKET_PATH_LIMIT and not set(b',"') & set(name):
        return data
    return Path("/tmp") / f"menzil-{hashlib.sha256(name).hexdigest()[:16]}"


def answers(path: Path) -> bool:
    """Whether a PostgreSQL serves this socket.

    Connecting is not enough: the kernel also connects to a server that is dying or hangs. So we ask it something.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2)
        try:
            probe.connect(os.fsencode(path))
            probe.sendall(SSL_REQUEST)
            return probe.recv(1) in (b"N", b"S")
        except OSError:
            return False


def read(path: Path) -> str:
    """Read a small file, never through a symbolic link and never waiting for the far end of a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        return file.read()


def write(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace a small file in one step, so that no reader gets half of it and a power cut leaves old or new."""
    with contextlib.suppress(OSError, ValueError):
        if read(path) == text:
            return
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(file.fileno(), mode)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a JSON object, or None when there is none."""
    with contextlib.suppress(OSError, ValueError):
        value = json.loads(read(path))
        return value if isinstance(value, dict) else None
    return None
