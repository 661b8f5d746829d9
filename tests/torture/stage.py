"""Everything that runs during a run, and how one part reaches another.

::

    senders, consumers, reader, workers ──▶ proxy (a port for each role) ──▶ PostgreSQL
    every third sender and consumer ──▶ PgBouncer ──▶ proxy ──▶ PostgreSQL
    workers ──▶ sink
    workers ──▶ relay ──▶ NATS, Valkey
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress

from psycopg.conninfo import make_conninfo

from tests.torture import pooler
from tests.torture.brokers import Brokers
from tests.torture.children import Child, python
from tests.torture.history import Diary
from tests.torture.place import Place
from tests.torture.plan import Plan
from tests.torture.server import Server

PLAYERS = ("sender", "consumer", "worker", "reader")
ROLES = ("sender", "consumer", "worker", "reader", "pooled")


class Stage:
    """The server, the helpers, the players."""

    def __init__(self, plan: Plan, place: Place, server: Server, diary: Diary) -> None:
        self.plan, self.place, self.server, self.diary = plan, place, server, diary
        self.proxy_control, self.sink_control = place.path / "proxy.sock", place.path / "sink.sock"
        self.relay_control = place.path / "relay.sock"
        self.brokers = Brokers(plan)
        self.children: list[Child] = []
        self.roles: list[str] = list(ROLES)
        self.ports: dict[str, int] = {}
        self.pooled: str | None = None

    def set_up(self) -> None:
        """Start the helpers: proxy, sink, pooler; then make the channels."""
        proxy = self._add("proxy", "helper", python("proxy", str(self.proxy_control), str(self.server.port), *ROLES))
        sink = self._add("sink", "helper", python("sink", str(self.sink_control)))
        self.ports = json.loads(proxy.first_line())
        relays = self._start_brokers()
        self.server.prepare(self.plan, int(sink.first_line()), lambda name: self.brokers.config(name, relays))
        if pooler.PGBOUNCER:
            command, self.pooled = pooler.configure(self.place.path, self.server.dsn, self.ports["pooled"])
            self._add("pooler", "pooler", command)
            self._wait_for_pooler()
        else:
            self.roles.remove("pooled")

    def _start_brokers(self) -> dict[str, int]:
        servers = self.brokers.servers
        if not servers:
            return {}
        for name, server in servers.items():
            self._add(name, "broker", server.command())
        self.brokers.make_ready()
        named = [f"{name}={server.port}" for name, server in servers.items()]
        relay = self._add("relay", "helper", python("relay", str(self.relay_control), *named))
        ports: dict[str, int] = json.loads(relay.first_line())
        return ports

    def _wait_for_pooler(self) -> None:
        port = int(make_port(self.pooled or ""))
        ends = time.monotonic() + 20
        while time.monotonic() < ends:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            time.sleep(0.02)
        raise AssertionError("the pooler does not answer")

    def enter_players(self) -> None:
        """Start whoever sends, consumes and reads."""
        for n in range(self.plan.workers):
            self._add(f"worker-{n}", "worker", self._worker(n))
        for n in range(self.plan.consumers):
            self._add(f"consumer-{n}", "consumer", python("consumer"), pooled=n % 3 == 2)
        self._add("reader-0", "reader", python("reader"))
        for n in range(self.plan.senders):
            self._add(f"sender-{n}", "sender", python("sender", str(n)), pooled=n % 3 == 2)

    def _worker(self, n: int) -> list[str]:
        dsn = self.dsn("worker")
        mutant = self.plan.mutant
        launcher = python("worker", "--mutant", mutant) if mutant else [sys.executable, "-m", "menzil", "worker"]
        # A name for each life: two workers of one name would share a line in the registry.
        return [
            *launcher, "tests.torture.apps:app", "--dsn", dsn, "--lease", str(self.plan.worker_lease),
            "--name", f"worker-{n}.{{life}}", "--grace", "1", "--concurrency", "40", "--batch", "60",
            *(["--no-listen"] if n % 2 else []), *self.plan.options.get("worker", []),
        ]  # fmt: skip

    def dsn(self, role: str) -> str:
        """The way to the database for this role."""
        return make_conninfo(self.server.dsn, port=self.ports.get(role, self.server.port))

    def _add(self, name: str, role: str, command: list[str], pooled: bool = False) -> Child:
        dsn = self.pooled if pooled and self.pooled else self.dsn(role)
        # PgBouncer refuses to be root. Becoming somebody else by itself, it would forget to die with us.
        user = "nobody" if role == "pooler" and os.geteuid() == 0 else None
        child = Child(name, role, command, dsn, talks=role == "helper", user=user)
        if self.plan.mutant:
            child.env["TORTURE_MUTANT"] = self.plan.mutant
        self.children.append(child)
        child.start(self.place)
        return child

    def wait_for_players(self, seconds: float = 120.0) -> None:
        """Wait until everybody is connected."""
        ends = time.monotonic() + seconds
        for child in self.children:
            while child.role in PLAYERS and not self._is_there(child):
                self.tend()
                assert time.monotonic() < ends, f"{child.name} does not come"
                time.sleep(0.02)

    def _is_there(self, child: Child) -> bool:
        if child.role == "worker":
            return " started " in self._said(child)
        diary = self.place.diaries / f"{child.name}.{child.lives}.jsonl"
        return diary.exists() and diary.stat().st_size > 0

    def _said(self, child: Child) -> str:
        return (self.place.path / "said" / f"{child.name}.txt").read_text()

    def of(self, role: str) -> list[Child]:
        """The players of this role."""
        return [child for child in self.children if child.role == role]

    def tend(self) -> None:
        """Give those another life who lost theirs."""
        for child in self.children:
            if child.alive or child.done or child.process is None:
                continue
            if child.role == "sender" and child.process.returncode == 0:
                child.done = True
            elif child.role in ("helper", "sender"):
                said = self._said(child)[-2000:]
                raise AssertionError(f"{child.name} ended with {child.process.returncode}:\n{said}")
            else:
                child.start(self.place)

    def dismiss(self, role: str, seconds: float = 15.0) -> None:
        """Ask the players of a role to end, and see to it."""
        for child in self.of(role):
            child.done = True
            child.signal(signal.SIGCONT)
            child.signal(signal.SIGTERM)
        ends = time.monotonic() + seconds
        for child in self.of(role):
            while child.alive and time.monotonic() < ends:
                time.sleep(0.01)
            child.kill()

    def close(self) -> None:
        """End everything at once."""
        for child in self.children:
            child.kill()
        self.brokers.clean_up()


def make_port(dsn: str) -> str:
    """The port in a DSN."""
    return next(word.removeprefix("port=") for word in dsn.split() if word.startswith("port="))
