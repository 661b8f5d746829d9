"""Real servers of MQTT: NATS (3.1.1, from a wheel), and Mosquitto (5, from the package of Debian)."""

from __future__ import annotations

import socket
import subprocess
import time
from typing import Any, Self

from tests.brokers.servers import PATIENCE, NatsServer, Server, free_port
from tests.brokers.unpacked import environment, program


class NatsMqtt(NatsServer):
    """NATS with JetStream, whose port is the one of MQTT. `more` is added to its config."""

    def __init__(self, more: str = "") -> None:
        self.mqtt_port = free_port()
        super().__init__(lines=self._lines(more))

    def _lines(self, more: str) -> str:
        return f'mqtt {{ listen: "127.0.0.1:{self.mqtt_port}" }}\n{more}'

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.mqtt_port), 0.2).close()
        except OSError:
            return False
        return super()._answers()

    def reload(self, lines: str) -> None:
        """Change the config of a server at work."""
        super().reload(self._lines(lines))


class Mosquitto(Server):
    """`lines` are added to its config. Its files are in memory, and messages stay over a restart."""

    name = "mosquitto"
    mqtt_port: int

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.mqtt_port = self.port

    def command(self) -> list[str]:
        lines = [
            f"listener {self.port} 127.0.0.1",
            "allow_anonymous true",
            "user root",  # it would give up root for a user that may not write here
            "persistence true",
            f"persistence_location {self.home}/",
            "max_queued_messages 0",
            "max_inflight_messages 1000",
            self.options.get("lines", ""),
        ]
        (self.home / "mosquitto.conf").write_text("\n".join(lines) + "\n")
        return [str(program("mosquitto")), "-c", str(self.home / "mosquitto.conf")]

    def start(self) -> Self:
        """Start it with the libraries that were unpacked beside it."""
        ends = time.monotonic() + PATIENCE
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, cwd=self.home, env=environment())
        while not self._answers():
            assert self.process.poll() is None, (self.home / "log").read_text()[-2000:]
            assert time.monotonic() < ends, f"{self.name} does not start"
            time.sleep(0.005)
        return self
