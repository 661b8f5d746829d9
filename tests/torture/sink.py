"""The receiver of all endpoints: `python -m tests.torture.sink CONTROL` prints its port.

It writes down each complete request before it answers. How it answers is up to the dice of the message, or to a mood
that a fault has put an endpoint in: {"do": "mood", "endpoint": …, "mood": …}, mood null for the end of it.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

from tests.torture.control import Order, listen
from tests.torture.place import Me

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
REASONS = {200: "OK", 404: "Not Found", 429: "Too Many Requests", 500: "Internal Server Error", 503: "Unavailable"}
#: What an endpoint does without any mood; the rest is 200.
HABITS = {"500": 0.02, "503": 0.003, "429": 0.003, "404": 0.003, "reset": 0.01, "garbage": 0.005, "slow": 0.03}
BOMB = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\x00" * 4096


class Sink:
    """All endpoints behind one port; the path is the endpoint's name."""

    def __init__(self, me: Me) -> None:
        self.me, self.seed = me, me.place.plan().seed
        self.moods: dict[str, str] = {}

    def obey(self, order: Order) -> str:
        """Change the mood of an endpoint."""
        if order["mood"] is None:
            self.moods.pop(order["endpoint"], None)
        else:
            self.moods[order["endpoint"]] = order["mood"]
        return "done"

    async def serve(self, reader: Reader, writer: Writer) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while await self._exchange(reader, writer):
                pass
        writer.close()

    async def _exchange(self, reader: Reader, writer: Writer) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        endpoint = head[0].split()[1].strip("/")
        facts = {
            "id": int(headers["webhook-id"].split("_")[1]), "attempt": int(headers["x-menzil-attempt"]),
            "ref": body["ref"], "endpoint": endpoint,
        }  # fmt: skip
        answer = self._answer(endpoint, facts["ref"], facts["attempt"])
        self.me.diary.note("hit", **facts, answer=answer)
        more = await self._reply(answer, writer)
        self.me.diary.note("hit.done", **facts, answer=answer)
        return more

    def _answer(self, endpoint: str, ref: str, attempt: int) -> str:
        if self.me.place.draining:
            return "200"
        if endpoint in self.moods:
            return self.moods[endpoint]
        chance = Random(f"{self.seed}/answer/{ref}/{attempt}").random()
        for word, share in HABITS.items():
            if chance < share:
                return word
            chance -= share
        return "200"

    async def _reply(self, answer: str, writer: Writer) -> bool:
        """Answer; whether the connection is still good for another request."""
        if answer == "slow":
            await asyncio.sleep(0.2)
        if answer in ("200", "slow"):
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        elif answer in ("404", "500", "429", "503"):
            rest = b"retry-after: 1\r\n" if answer in ("429", "503") else b""
            status = f"HTTP/1.1 {answer} {REASONS[int(answer)]}\r\n".encode()
            writer.write(status + rest + b"content-length: 3\r\n\r\nno!")
        elif answer == "hang":
            await asyncio.sleep(1.5)  # longer than the worker waits
            return False
        elif answer == "garbage":
            writer.write(bytes(range(1, 255)) * 4)
        elif answer == "drip":
            for byte in b"HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n":
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.05)
        elif answer == "half":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf")
        elif answer == "huge":
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 50000000\r\n\r\n")
            for _ in range(50):
                writer.write(b"x" * 65536)
                await writer.drain()
        elif answer == "bomb":
            head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(BOMB)
            writer.write(head + BOMB)
        elif answer == "reset":
            writer.transport.abort()
            return False
        await writer.drain()
        return answer in ("200", "slow", "404", "500", "429", "503", "bomb")


async def main(me: Me, control: Path) -> None:
    """Listen until killed."""
    sink = Sink(me)
    server = await asyncio.start_server(sink.serve, "127.0.0.1", 0)
    await listen(control, sink.obey)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Me.here(), Path(sys.argv[1])))
