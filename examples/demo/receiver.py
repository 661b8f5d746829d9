"""The other side: a small HTTP server that does to each path what it is told to, and writes down what came.

It is a program of its own that imports nothing of menzil, so that a mistake of ours is not made here, too. Orders come
as lines of JSON on standard input, each is answered by one on standard output; when the input ends, so does this.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import sys
import time
from contextlib import suppress
from typing import Any

Act = dict[str, Any]


class Receiver:
    """What to do, by path, and what was done."""

    def __init__(self) -> None:
        self.script: dict[str, list[Act]] = {}  # for the next requests, one each
        self.then: dict[str, Act] = {}  # for all others; 200 unless told
        self.secrets: dict[str, str] = {}
        self.requests: list[dict[str, Any]] = []
        self.connections = 0
        self._held: dict[str, list[asyncio.Event]] = {}

    def obey(self, order: dict[str, Any]) -> Any:
        """Carry out one order; return the answer."""
        path = order.get("path", "")
        if order["do"] == "play":
            self.script[path], self.then[path] = order["script"], order["then"]
        elif order["do"] == "secret":
            self.secrets[path] = order["secret"]
        elif order["do"] == "release":
            held = self._held.get(path, [])
            for _ in range(min(order["count"], len(held))):
                held.pop(0).set()
        elif order["do"] == "tell":
            return {"connections": self.connections, "requests": self.requests}
        return {}

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, request after request."""
        self.connections += 1
        first: bytes | None = b""
        try:
            while first is not None:
                first = await self._serve(first, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the other side is done, or the show is over
        finally:
            writer.close()

    async def _serve(self, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        """Serve the request that begins with `first`; return what came of the next one, or None after the last."""
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        path = head[0].split(" ")[1]
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = {
            "path": path,
            "id": headers.get("webhook-id"),
            "attempt": int(headers.get("x-menzil-attempt", 0)),
            "correlation_id": headers.get("x-correlation-id"),
            "signed": self._signed(path, headers, body),
            "began": time.monotonic(),
            "ended": None,
            "status": None,  # until it is answered
        }
        self.requests.append(request)
        script = self.script.get(path)
        act = script.pop(0) if script else self.then.get(path, {})
        writing = asyncio.ensure_future(self._act(act, path, writer))
        coming = asyncio.ensure_future(reader.read(1))  # the end, if it comes before our answer
        await asyncio.wait([writing, coming], return_when=asyncio.FIRST_COMPLETED)
        request["ended"] = time.monotonic()
        if not writing.done() or writing.exception() is not None:
            writing.cancel()
            return None
        request["status"] = writing.result()
        coming.cancel()
        with suppress(asyncio.CancelledError):
            return await coming
        return b""

    async def _act(self, act: Act, path: str, writer: asyncio.StreamWriter) -> int:
        if act.get("hold"):
            event = asyncio.Event()
            self._held.setdefault(path, []).append(event)
            await event.wait()
        await asyncio.sleep(act.get("wait", 0))
        status = int(act.get("status", 200))
        body = str(act.get("body", "")).encode()
        rest = f"retry-after: {act['retry_after']}\r\n" if "retry_after" in act else ""
        head = f"HTTP/1.1 {status} Told so\r\ncontent-type: text/plain\r\n{rest}content-length: {len(body)}\r\n\r\n"
        if act.get("drip"):
            for sign in head.encode():  # alive all the time, and never done
                writer.write(bytes([sign]))
                await writer.drain()
                await asyncio.sleep(0.1)
        writer.write(head.encode() + body)
        await writer.drain()
        return status

    def _signed(self, path: str, headers: dict[str, str], body: bytes) -> bool | None:
        """Whether a signature of Standard Webhooks is there and right; None where no secret was agreed upon."""
        if path not in self.secrets:
            return None
        key = base64.b64decode(self.secrets[path].removeprefix("whsec_"))
        text = f"{headers.get('webhook-id')}.{headers.get('webhook-timestamp')}.".encode() + body
        mine = "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
        fresh = abs(time.time() - int(headers.get("webhook-timestamp", 0))) < 300
        theirs = headers.get("webhook-signature", "").split(" ")
        return fresh and any(hmac.compare_digest(mine, one) for one in theirs)


async def main() -> None:
    """Listen on a free port, say which, and obey until the input ends."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.connected, "127.0.0.1", 0)
    answer(server.sockets[0].getsockname()[1])
    orders = asyncio.StreamReader(limit=2**20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        answer(receiver.obey(json.loads(line)))
    server.close()


def answer(what: object) -> None:
    """Tell the process that started us."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
