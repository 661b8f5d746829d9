"""How the runner gives orders to its helpers: one JSON line over a Unix socket, one line back."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

Order = dict[str, Any]


async def listen(path: Path, obey: Callable[[Order], Any]) -> None:
    """Obey orders that come in over this socket."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(json.dumps(obey(json.loads(line))).encode() + b"\n")
        writer.close()

    await asyncio.start_unix_server(serve, path)


def tell(path: Path, **order: Any) -> Any:
    """Give an order and wait until it was obeyed."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(str(path))
        sock.sendall(json.dumps(order).encode() + b"\n")
        with sock.makefile() as answer:
            return json.loads(answer.readline())
