"""The server that is measured: an embedded one on a real disk with fsync on, or the one behind --dsn.

Every section works in databases of its own, made from a template with menzil installed; version 0.1.0 has a template of
its own.
"""

from __future__ import annotations

import itertools
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench.loads import bare
from menzil.embedded import Embedded
from menzil.install import migrate

PREFIX = "menzil_bench"
CHANNEL = "bench"
SHOWN = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "jit")


class Server:
    """A running server that makes databases."""

    def __init__(self, dsn: str, *, own: bool = False) -> None:
        self.dsn = dsn
        self.own = own  # no other program uses it: its settings may be changed
        self._numbers = itertools.count(1)
        self._made: list[str] = []
        with self._connected() as conn:
            self.version = conn.info.parameter_status("server_version") or ""
            self.settings = {name: conn.execute(f"show {name}").fetchone()[0] for name in SHOWN}  # type: ignore[index]
        self._templates: dict[Path | None, str] = {}
        self._template(None)

    def database(self, root: Path | None = None) -> str:
        """The DSN of a fresh database: menzil with one channel and no size limit, and the bare table.

        `root` is the SQL of another version; without it the version beside this file is installed.
        """
        return make_conninfo(self.dsn, dbname=self._create(self._template(root)))

    def copy(self, dsn: str) -> str:
        """The DSN of a fresh database with all that is in another one made here, which must have no connections."""
        return make_conninfo(self.dsn, dbname=self._create(str(conninfo_to_dict(dsn)["dbname"])))

    def remove(self, dsn: str) -> None:
        """Give the disk back before the end."""
        name = str(conninfo_to_dict(dsn)["dbname"])
        with self._connected() as conn:
            conn.execute(f"drop database if exists {name} with (force)")
        self._made.remove(name)

    def drop(self) -> None:
        """Remove every database made here."""
        with self._connected() as conn:
            for name in self._made:
                conn.execute(f"drop database if exists {name} with (force)")
        self._made.clear()

    def _template(self, root: Path | None) -> str:
        """The database that others of this version are copied from."""
        if root not in self._templates:
            name = self._create("template1")
            dsn = make_conninfo(self.dsn, dbname=name)
            migrate(dsn, root=root)
            with connected(dsn) as conn:
                conn.execute(bare.TABLE)
                conn.execute("select menzil.set_setting('max_queue_size', '0')")
                conn.execute("select menzil.channel_set(%s)", (CHANNEL,))
            self._templates[root] = name
        return self._templates[root]

    def _create(self, template: str) -> str:
        name = f"{PREFIX}_{os.getpid()}_{next(self._numbers)}"
        with self._connected() as conn:
            conn.execute(f"create database {name} template {template}")
        with connected(make_conninfo(self.dsn, dbname=name)) as conn:
            # A clone stands still until it is adopted; releases before 0.2 have no such function.
            if conn.execute("select to_regprocedure('menzil.adopt()')").fetchone() != (None,):
                conn.execute("select menzil.adopt()")
        self._made.append(name)
        return name

    def _connected(self) -> psycopg.Connection[Any]:
        return connected(self.dsn)


def connected(dsn: str) -> psycopg.Connection[Any]:
    """A connection of the one who measures; commits each statement."""
    return psycopg.connect(dsn, autocommit=True)


@contextmanager
def serve(dsn: str | None) -> Iterator[Server]:
    """The server, with its databases removed at the end."""
    if dsn is not None:
        server = Server(dsn)
        try:
            yield server
        finally:
            server.drop()
        return
    with tempfile.TemporaryDirectory(prefix="mz-", dir=_on_disk(), ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)  # under root another account runs the server
        with Embedded(Path(place) / "pg", durable=True) as running:
            yield Server(running.dsn, own=True)
            running.close(wait=30)


def _on_disk() -> Path:
    """A directory for temporary files that is not a file system in memory."""
    mounts: list[tuple[str, str]] = []
    with suppress(OSError):
        lines = Path("/proc/self/mounts").read_text().splitlines()
        mounts = [(fields[1], fields[2]) for fields in (line.split() for line in lines)]

    def kind(place: Path) -> str:
        holding = [mount for mount in mounts if place.is_relative_to(mount[0])]
        return max(holding, key=lambda mount: len(mount[0]))[1] if holding else ""

    for place in (Path(tempfile.gettempdir()).resolve(), Path("/var/tmp")):
        if place.is_dir() and kind(place) not in ("tmpfs", "ramfs"):
            return place
    return Path(__file__).resolve().parent / "results"


def circumstances(server: Server) -> dict[str, str]:
    """What a reader must know about the machine to judge a figure."""
    settings = ", ".join(f"{name} {value}" for name, value in server.settings.items())
    return {
        "server": f"PostgreSQL {server.version.split()[0]} ({settings})",
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "client": f"Python {platform.python_version()}, psycopg {psycopg.__version__}, processes on the same machine",
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }
