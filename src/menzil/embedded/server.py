"""Embedded: a PostgreSQL of one's own, started on demand and shared by every process that asks for it."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from menzil.embedded import binaries, places
from menzil.embedded.account import server_account
from menzil.embedded.dsn import socket_dsn, tcp_dsn
from menzil.embedded.errors import EmbeddedError
from menzil.embedded.holders import Hold, users
from menzil.embedded.home import Home, Server, read_json, write
from menzil.embedded.locks import is_locked, open_lock, try_exclusive
from menzil.embedded.plan import Plan
from menzil.embedded.publish import reachable
from menzil.embedded.spawn import spawn

log = logging.getLogger("menzil.embedded")


class Embedded:
    """A running PostgreSQL, as a context manager or with start() and close().

    All processes that name the same data directory share one server. It runs while any of them is alive, and is
    started again should it die meanwhile. An Embedded that is never closed lasts as long as its process.
    `durable=False` is for tests: faster, and a power cut may destroy everything.
    """

    def __init__(self, data_dir: Path | str | None = None, *, durable: bool = True) -> None:
        self.data_dir = places.data_dir(data_dir)
        self.durable = durable
        self._home: Home | None = None
        self._hold: Hold | None = None
        self._server = Server(0, 0)
        self._version = ""

    def start(self, *, timeout: float = 120.0) -> Self:
        """Have the server running when this returns; starts it only if it is not running. May be called twice."""
        if self._hold is not None:
            return self
        deadline = time.monotonic() + timeout
        found = binaries.find()
        self._tell_of_others(found.major)
        self._home = places.make_home(self.data_dir, found.major)
        try:
            self._hold = Hold(self._home, deadline)
            self._server = self._wait(self._home, found, deadline)
            self._check_durable(self._home)
            plan = Plan.load(self._home)
            self._version = plan.version if plan else found.version
        except OSError as error:
            self.close()
            raise EmbeddedError(
                f"The server cannot be started: {error}.", hint=f"make room in {self.data_dir}"
            ) from error
        except BaseException:
            self.close()
            raise
        return self

    def close(self, *, wait: float = 0.0) -> None:
        """Let go of the server, which stops when no other process holds it; wait so many seconds to see that happen."""
        if self._hold is None or self._home is None:
            return
        self._hold.release()
        self._hold = None
        deadline = time.monotonic() + wait
        while time.monotonic() < deadline and is_locked(self._home.supervisor):
            if self._home.pinned.exists() or users(self._home):
                return
            time.sleep(0.01)

    def pin(self) -> None:
        """Keep the server running without users, until `menzil pg stop`."""
        write(self._running().pinned, "")

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def dsn(self) -> str:
        """Connection string over TCP, password included."""
        return tcp_dsn(self._running(), self.port)

    @property
    def socket_dsn(self) -> str:
        """Connection string over the Unix socket, password included."""
        return socket_dsn(self._running(), self.port)

    @property
    def pid(self) -> int:
        """The pid of the postmaster; another one after a restart."""
        return self._now().pid

    @property
    def port(self) -> int:
        """The TCP port; a restart takes the same one unless another program has taken it."""
        return self._now().port

    @property
    def version(self) -> str:
        """The version of PostgreSQL, as in "18.6"."""
        self._running()
        return self._version

    def _now(self) -> Server:
        recorded = self._running().recorded()
        if recorded and recorded[1] == "ready":
            self._server = recorded[0]
        return self._server

    def _running(self) -> Home:
        if self._home is None or self._hold is None:
            raise EmbeddedError(
                "The embedded PostgreSQL is not started.", hint="use it in a with block, or call start()"
            )
        return self._home

    def _wait(self, home: Home, found: binaries.Binaries, deadline: float) -> Server:
        """Wait for a server that answers; give it a supervisor whenever it has none."""
        began = time.time()
        lock = open_lock(home.supervisor)
        try:
            while time.monotonic() < deadline:
                if try_exclusive(lock):
                    self._raise_failure(home, began)
                    spawn(home, self._plan(home, found), lock)
                    os.close(lock)  # ours alone: the supervisor holds on to its own copy
                    lock = open_lock(home.supervisor)
                server = home.ready()
                if server:
                    return server
                time.sleep(0.005)
        finally:
            os.close(lock)
        raise EmbeddedError("The server did not become ready in time.", hint=f"its log is {home.log}")

    def _plan(self, home: Home, found: binaries.Binaries) -> Plan:
        account = server_account(home.data)
        found = reachable(found, account)
        places.claim_socket_dir(home, account)
        uid, gid = (account.uid, account.gid) if account else (None, None)
        return Plan(str(found.bin), found.version, uid, gid, self.durable)

    def _check_durable(self, home: Home) -> None:
        if self.durable and not home.is_durable():
            raise EmbeddedError(
                f"The server in {self.data_dir} was started with durable=False.",
                hint="stop that one first (`menzil pg stop`), or choose another data directory",
            )

    def _tell_of_others(self, major: int) -> None:
        versions = [int(home.path.name) for home in places.homes(self.data_dir) if home.has_cluster()]
        if versions and major not in versions:
            log.warning(
                "%s holds data of PostgreSQL %s; this is PostgreSQL %s, which begins with an empty server beside it",
                self.data_dir, versions[0], major,
            )  # fmt: skip

    @staticmethod
    def _raise_failure(home: Home, began: float) -> None:
        failure = read_json(home.failure)
        if failure and failure.get("at", 0) >= began:
            raise EmbeddedError(failure["message"], hint=failure["hint"])
