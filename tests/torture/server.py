"""The PostgreSQL of a run: an embedded one of its own, on a small disk where we may mount one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from menzil.embedded import Embedded
from menzil.install import migrate
from tests.torture import clock, effects, months
from tests.torture.plan import BROKER, ENDPOINT, Plan

#: Room for a full run; nothing is taken before it is used.
DISK_MB = 6000
#: Left free when the disk is full: some statements succeed, some fail.
SCRAPS = 40_000
ERROR = re.compile(r"(?:ERROR|FATAL|PANIC):\s+([0-9A-Z]{5}):\s*(.*)")
RETRIES = {"backoff": "exponential", "base_delay_seconds": 0.05, "max_delay_seconds": 0.8}
SETTINGS = {
    "http_allow_internal_urls": "true",
    "broker_allowed_networks": "127.0.0.0/8",
    "circuit_breaker_threshold": "25",
    "circuit_breaker_cooldown": "5",
    "max_queue_size": "0",
}


class Server:
    """Start it, ask it, read its log. An acknowledged commit survives the death of every process (fsync is off, but
    synchronous_commit is on: the log is in the hands of the kernel)."""

    def __init__(self, place: Path, disk: bool, turn_in: float | None = None) -> None:
        """With `turn_in`, a month ends so many seconds from now by the clock of this server."""
        self.home = place / "pg"
        self.home.mkdir()
        self.disk = disk and self._mount()
        self.home.chmod(0o755)
        self.library = clock.compiled(place)
        self.turns = turn_in is not None and self.library is not None
        wrapped = None
        if turn_in is not None and self.library is not None:
            wrapped = clock.wrapped(place, self.library, int(clock.until_the_month_ends() - turn_in))
        with clock.in_use(wrapped):
            self.embedded = Embedded(self.home, durable=False).start()
        self.port = self.embedded.port
        self.dsn = make_conninfo(self.embedded.dsn, dbname="torture", sslmode="disable", gssencmode="disable")
        with psycopg.connect(self.embedded.dsn, autocommit=True) as conn:
            assert conn.execute("show synchronous_commit").fetchone() == ("on",)
            conn.execute("alter system set log_error_verbosity = verbose")
            conn.execute("alter system set deadlock_timeout = '200ms'")
            conn.execute("alter system set track_functions = 'pl'")
            conn.execute("alter system set max_wal_size = '512MB'")  # the disk may be memory
            conn.execute("select pg_reload_conf()")
            conn.execute("create database torture")
        migrate(self.dsn)

    def _mount(self) -> bool:
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "tmpfs", str(self.home)]
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0

    def prepare(self, plan: Plan, sink: int, brokers: Callable[[str], tuple[str, str]]) -> None:
        """Make the channels of the plan and the endpoints: on the sink's port, and those of brokers."""
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(effects.TABLE)
            for name, value in SETTINGS.items():
                conn.execute("select menzil.set_setting(%s, %s)", (name, value))
            for name, channel in plan.channels.items():
                if channel.serves == ENDPOINT:
                    config = json.dumps({"url": f"http://127.0.0.1:{sink}/{name}", "timeout_seconds": 1,
                                         "connect_timeout_seconds": 1})  # fmt: skip
                    conn.execute("select menzil.create_endpoint(%s, 'http', %s::jsonb)", (name, config))
                elif channel.serves == BROKER:
                    conn.execute("select menzil.create_endpoint(%s, %s, %s::jsonb)", (name, *brokers(name)))
                conn.execute(
                    "select menzil.channel_set(%s, p_max_concurrency => %s, p_release_interval_ms => %s,"
                    " p_release_count => %s)",
                    (name, channel.max_concurrency, channel.release_interval_ms, channel.release_count),
                )
                policy = json.dumps({**RETRIES, "max_retries": channel.max_retries})
                conn.execute("select menzil.set_retry_policy(%s, %s::jsonb)", (name, policy))
            if self.turns:  # no month has been made ahead: what comes after the turn has to wait for the job
                conn.execute(months.DROP_AHEAD)
                conn.execute(months.jobs_due(months.NEXT_MONTH).encode())

    def connect(self, seconds: float = 60.0) -> psycopg.Connection[Any]:
        """Connect directly, around the proxy, once the server is up again."""
        ends = time.monotonic() + seconds
        while True:
            try:
                return psycopg.connect(self.dsn, autocommit=True, connect_timeout=3)
            except psycopg.OperationalError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.05)

    def ask(self, text: str, *values: Any) -> Any:
        """One value, asked again while the server is away."""
        ends = time.monotonic() + 60
        while True:
            try:
                with self.connect() as conn:
                    row = conn.execute(text.encode(), values or None).fetchone()
                    return row[0] if row else None
            except psycopg.OperationalError:
                if time.monotonic() > ends:
                    raise

    def fill(self) -> None:
        """Leave next to no room on the disk. A size that is used up before it is set is refused: then again."""
        ends = time.monotonic() + 10
        while True:
            stat = os.statvfs(self.home)
            used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize
            try:
                self._resize(str(used + SCRAPS))
                return
            except subprocess.CalledProcessError:
                if time.monotonic() > ends:
                    raise

    def make_room(self) -> None:
        """Give the disk its size back."""
        self._resize(f"{DISK_MB}m")

    def _resize(self, size: str) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.home)], check=True)

    def errors(self) -> Iterator[tuple[str, str]]:
        """(SQLSTATE, text) of every error in the server's log."""
        for path in sorted(self.home.rglob("server.log*")):
            for line in path.read_text(errors="replace").splitlines():
                if found := ERROR.search(line):
                    yield found[1], found[2]

    def error_counts(self) -> dict[str, int]:
        return dict(sorted(Counter(code for code, _ in self.errors()).items()))

    def close(self) -> None:
        self.embedded.close(wait=30)
        if self.disk:
            with suppress(OSError):
                subprocess.run(["umount", "-l", str(self.home)], capture_output=True, check=False)
