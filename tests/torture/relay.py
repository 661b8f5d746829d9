"""A relay in front of the brokers: `python -m tests.torture.relay CONTROL NAME=PORT…` prints its ports as JSON.

Orders: {"do": "swallow" | "hear" | "reset" | "half", "broker": NAME}. A connection that lost bytes stays deaf until it
ends: TCP loses nothing in the middle of a connection and then goes on.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.torture.control import Order, listen

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
GONE = (OSError, asyncio.IncompleteReadError)


class Line:
    """A connection of a worker, and the one to the broker that belongs to it."""

    def __init__(self, client: Writer, broker: Writer) -> None:
        self.client, self.broker = client, broker
        self.is_deaf = False
        self.ends_after: int | None = None  # bytes of an answer

    def cut(self) -> None:
        """End both sides at once."""
        for writer in (self.client, self.broker):
            with suppress(*GONE):
                writer.transport.abort()


class Relay:
    """All connections to one broker."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.lines: set[Line] = set()
        self.swallows = False

    async def serve(self, reader: Reader, writer: Writer) -> None:
        try:
            answers, broker = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            writer.transport.abort()
            return
        line = Line(writer, broker)
        line.is_deaf = self.swallows
        self.lines.add(line)
        pumps = [
            asyncio.ensure_future(self._pump(line, reader, broker, is_answer=False)),
            asyncio.ensure_future(self._pump(line, answers, writer, is_answer=True)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        self.lines.discard(line)
        line.cut()

    async def _pump(self, line: Line, source: Reader, target: Writer, *, is_answer: bool) -> None:
        with suppress(*GONE):
            while data := await source.read(2**16):
                line.is_deaf = line.is_deaf or self.swallows
                if line.is_deaf:
                    continue
                if is_answer and line.ends_after is not None:
                    target.write(data[: line.ends_after])
                    await target.drain()
                    return
                target.write(data)
                await target.drain()

    def obey(self, do: str) -> int:
        """Do it; return how many connections it concerns."""
        if do == "swallow":
            self.swallows = True
        elif do == "hear":
            self.swallows = False
        for line in list(self.lines):
            if do == "reset":
                line.cut()
            elif do == "half":
                line.ends_after = 7  # in the middle of the next answer
        return len(self.lines)


async def main(control: Path, brokers: dict[str, int]) -> None:
    """Listen until killed."""
    relays = {name: Relay(port) for name, port in brokers.items()}
    ports = {}
    for name, relay in relays.items():
        server = await asyncio.start_server(partial(Relay.serve, relay), "127.0.0.1", 0)
        ports[name] = server.sockets[0].getsockname()[1]

    def obey(order: Order) -> Any:
        return relays[order["broker"]].obey(order["do"])

    await listen(control, obey)
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    named = (word.partition("=") for word in sys.argv[2:])
    asyncio.run(main(Path(sys.argv[1]), {name: int(port) for name, _, port in named}))
