"""A real RabbitMQ as a child process on loopback, unpacked from Debian packages or installed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

from tests.brokers.servers import PATIENCE, Server, free_port
from tests.brokers.unpacked import FOLDER, environment, program, why_not

#: Debian's own start script wants the user rabbitmq; these do not.
_SCRIPTS = "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin"


def _scripts() -> Path | None:
    """Return the folder with rabbitmq-server and rabbitmqctl."""
    for root in (FOLDER, Path("/")):
        if found := sorted(root.glob(_SCRIPTS)):
            return found[-1]
    found_program = program("rabbitmq-server")
    return found_program.parent if found_program else None


def needs_rabbit() -> None:
    """Skip a test where there is no RabbitMQ."""
    if _scripts() is None:
        pytest.skip(why_not("rabbitmq-server"))


class Rabbit(Server):
    """`lines` are added to its config, `plugins` are enabled. Every port is one that was free."""

    name = "rabbit"

    def __init__(self, *, lines: str = "", plugins: str = "", tls_port: int = 0) -> None:
        super().__init__()
        self.tls_port = tls_port
        self._epmd_port, self._dist_port = free_port(), free_port()
        self._epmd: subprocess.Popen[bytes] | None = None
        erlang = FOLDER / "usr/lib/erlang"
        self._erlang = erlang if erlang.exists() else None
        if self._erlang:
            # Debian's start script of Erlang knows one place only.
            binaries = next(erlang.glob("erts-*/bin"))
            (self.home / "bin").mkdir()
            named = f'ROOTDIR="{erlang}" BINDIR="{binaries}" EMU=beam PROGNAME=erl'
            (self.home / "bin" / "erl").write_text(f'#!/bin/sh\n{named} exec "{binaries}/erlexec" "$@"\n')
            (self.home / "bin" / "erl").chmod(0o755)
        (self.home / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            "log.console = true\nlog.console.level = warning\nlog.file = false\n"
            "vm_memory_high_watermark.absolute = 1GB\ndisk_free_limit.absolute = 1MB\n" + lines
        )
        (self.home / "plugins").write_text(f"[{plugins}].\n")

    def _environment(self) -> dict[str, str]:
        programs = f"{self.home}/bin:{self._erlang}/bin:" if self._erlang else ""
        return environment() | {
            "HOME": str(self.home),
            "PATH": f"{programs}{os.environ['PATH']}",
            "RABBITMQ_NODENAME": f"t{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": str(self.home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.home / "log"),
            "RABBITMQ_CONFIG_FILE": str(self.home / "rabbitmq"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.home / "plugins"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CTL_ERL_ARGS": "+S 1:1",
        }

    def start(self) -> Self:
        """Start the name server of Erlang, which Debian's Erlang does not start, and the broker."""
        if self._epmd is None:
            place = self._erlang or Path("/usr/lib/erlang")
            epmd = next(iter(sorted(place.glob("erts-*/bin/epmd"))), program("epmd"))
            assert epmd is not None
            command = [str(epmd), "-port", str(self._epmd_port), "-address", "127.0.0.1"]
            self._epmd = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            self._until(lambda: _answers(self._epmd_port))
        scripts = _scripts()
        assert scripts is not None
        with open(self.home / "log.txt", "ab") as log:
            # A session of its own: the start script is the parent of Erlang, and signals are for both.
            self.process = subprocess.Popen(
                ["/bin/sh", str(scripts / "rabbitmq-server")],
                env=self._environment(), stdout=log, stderr=log, cwd=self.home, start_new_session=True,
            )  # fmt: skip
        self._until(self._speaks)
        return self

    def _until(self, condition: object) -> None:
        ends = time.monotonic() + 2 * PATIENCE
        assert callable(condition)
        while not condition():
            assert self.process is None or self.process.poll() is None, self._log()
            assert time.monotonic() < ends, f"RabbitMQ does not start: {self._log()}"
            time.sleep(0.02)

    def _log(self) -> str:
        return (self.home / "log.txt").read_text()[-2000:]

    def _speaks(self) -> bool:
        """Whether it greets. The port is open seconds before that."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as sock:
                sock.settimeout(5)
                sock.sendall(b"AMQP\x00\x00\x09\x01")
                return sock.recv(1) == b"\x01"
        except OSError:
            return False

    def signal(self, number: int) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            self.signal(signal.SIGTERM)
            self._gone()

    def _gone(self) -> None:
        """Wait until the port is closed: the start script is gone before Erlang is."""
        assert self.process is not None
        self.process.wait(PATIENCE)
        ends = time.monotonic() + PATIENCE
        while _answers(self.port):
            assert time.monotonic() < ends, "RabbitMQ does not stop"
            time.sleep(0.01)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *about: object) -> None:
        super().__exit__(None, None, None)
        if self._epmd is not None:
            self._epmd.kill()
            self._epmd.wait(PATIENCE)

    def control(self, *words: str) -> str:
        """Run rabbitmqctl; about two seconds."""
        scripts = _scripts()
        assert scripts is not None
        done = subprocess.run(
            ["/bin/sh", str(scripts / "rabbitmqctl"), "--quiet", *words],
            env=self._environment(), capture_output=True, text=True, timeout=2 * PATIENCE, cwd=self.home,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 0.2).close()
    except OSError:
        return False
    return True
