"""A real S3 server on loopback: moto's, in a process of its own. Its speed says nothing about S3."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyarrow.fs import S3FileSystem

#: Seconds. One Python process answers all, perhaps on a busy machine; clients wait 3 seconds unless told.
PATIENCE = 100
KEY, SECRET = "an-access-key", "a-secret-key-of-the-store"


@dataclass(frozen=True)
class Store:
    """Where it is."""

    port: int
    bucket: str = "history"

    def files(self) -> S3FileSystem:
        """Its files, by a client of its own."""
        return S3FileSystem(
            access_key=KEY, secret_key=SECRET, endpoint_override=f"127.0.0.1:{self.port}", scheme="http",
            region="us-east-1", allow_bucket_creation=True, connect_timeout=PATIENCE, request_timeout=PATIENCE,
        )  # fmt: skip

    def configure(self, patch: pytest.MonkeyPatch) -> None:
        """Say in the environment, as pyiceberg reads it, how the default catalog reaches the store."""
        said = {
            "ENDPOINT": f"http://127.0.0.1:{self.port}", "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET,
            "REGION": "us-east-1", "CONNECT_TIMEOUT": str(PATIENCE), "REQUEST_TIMEOUT": str(PATIENCE),
        }  # fmt: skip
        for name, value in said.items():
            patch.setenv(f"PYICEBERG_CATALOG__MENZIL__S3__{name}", value)


@contextmanager
def running(log: Path) -> Iterator[Store]:
    """The server with an empty bucket, until this ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=out, env=quiet) as process:
        try:
            _wait(process, port, log)
            store = Store(port)
            store.files().create_dir(store.bucket)
            yield store
        finally:
            process.terminate()
            process.wait(20)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + 240
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, "the S3 server did not start"
        time.sleep(0.05)
