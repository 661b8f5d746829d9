"""A proxy in front of PostgreSQL that cuts, stalls, delays, and cuts between a commit and its answer.

`python -m tests.torture.proxy CONTROL PORT ROLE…` listens on one port for each role and prints them as JSON. Orders:
{"do": "cut" | "stall" | "delay" | "cut_commit" | "lose_commit" | "free", "role": …, "share": 0…1, …}.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tests.torture import wire
from tests.torture.control import Order, listen

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
GONE = (OSError, asyncio.IncompleteReadError)


class Line:
    """One connection of a client and the one to the server that belongs to it."""

    def __init__(self, role: str, client: Writer, server: Writer) -> None:
        self.role, self.client, self.server = role, client, server
        self.open = {"up": asyncio.Event(), "down": asyncio.Event()}
        for event in self.open.values():
            event.set()
        self.delay = 0.0
        self.answered = False  # a statement has returned its rows, and the server has not yet said that it is done

    def cut(self) -> None:
        """End both sides at once; whatever is still in a buffer is lost."""
        for writer in (self.client, self.server):
            with suppress(*GONE):
                writer.transport.abort()


class Proxy:
    """All lines, and what is to happen to the next commits."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.lines: set[Line] = set()
        self.arms: list[dict[str, Any]] = []

    async def serve(self, role: str, reader: Reader, writer: Writer) -> None:
        try:
            up, server = await asyncio.open_connection("127.0.0.1", self.port, limit=2**20)
        except OSError:
            writer.transport.abort()
            return
        line = Line(role, writer, server)
        self.lines.add(line)
        pumps = [
            asyncio.ensure_future(self._pump(line, "up", reader, server)),
            asyncio.ensure_future(self._pump(line, "down", up, writer)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        self.lines.discard(line)
        for end in (writer, server):
            with suppress(*GONE):
                end.close()

    async def _pump(self, line: Line, way: str, source: Reader, target: Writer) -> None:
        frames = wire.Frames(client=way == "up")
        with suppress(*GONE):
            while data := await source.read(2**16):
                if line.delay:
                    await asyncio.sleep(line.delay)
                await line.open[way].wait()
                passed = bytearray()
                for kind, whole in frames.feed(data):
                    if self._strikes(line, way, kind, whole):
                        target.write(bytes(passed))  # what came before it did arrive
                        await target.drain()
                        line.cut()
                        return
                    passed += whole
                target.write(bytes(passed))
                await target.drain()

    def _strikes(self, line: Line, way: str, kind: bytes, whole: bytes) -> bool:
        """Whether the connection is cut in place of this message."""
        if way == "up":
            return wire.asks_commit(kind, whole) and self._fire("lose_commit", line.role)
        implicit = line.answered and wire.is_idle(kind, whole)
        line.answered = wire.tells_rows(kind, whole) or (line.answered and kind not in b"ZE")
        return (wire.tells_commit(kind, whole) or implicit) and self._fire("cut_commit", line.role)

    def _fire(self, what: str, role: str) -> bool:
        for arm in self.arms:
            if arm["do"] == what and arm["role"] in (role, None) and arm["left"] > 0:
                arm["left"] -= 1
                return True
        return False

    def obey(self, order: Order) -> Any:
        """An order of the runner; answers how many connections it concerns, or how often an arm has struck."""
        do, role = order["do"], order.get("role")
        if do in ("cut_commit", "lose_commit"):
            self.arms.append({"do": do, "role": role, "left": order["times"], "n": order["n"]})
            return order["times"]
        if do == "disarm":
            struck = sum(order["times"] - arm["left"] for arm in self.arms if arm["n"] == order["n"])
            self.arms = [arm for arm in self.arms if arm["n"] != order["n"]]
            return struck
        lines = sorted((line for line in self.lines if role in (line.role, None)), key=id)
        lines = lines[: max(1, round(len(lines) * order.get("share", 1.0)))]
        for line in lines:
            if do == "cut":
                line.cut()
            elif do == "stall":
                line.open[order["way"]].clear()
            elif do == "delay":
                line.delay = order["seconds"]
            elif do == "free":
                line.delay = 0.0
                for event in line.open.values():
                    event.set()
        return len(lines)


async def main(control: Path, port: int, roles: list[str]) -> None:
    """Listen until killed."""
    proxy, ports = Proxy(port), {}
    for role in roles:
        server = await asyncio.start_server(partial(proxy.serve, role), "127.0.0.1", 0, limit=2**20)
        ports[role] = server.sockets[0].getsockname()[1]
    await listen(control, proxy.obey)
    print(json.dumps(ports), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
