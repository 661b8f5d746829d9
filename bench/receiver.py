"""The other side of HTTP deliveries: a process on loopback that answers 200 to every request, as cheaply as it can.

It counts requests in a file that both sides have mapped: asking costs it nothing.
"""

from __future__ import annotations

import asyncio
import mmap
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from bench import loops, usage

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
COUNT, FIRST, LAST, SIZE = 0, 1, 2, 3  # places in the mapped file


class Counting(asyncio.Protocol):
    """One connection. A request has a content-length: ours always do."""

    def __init__(self, numbers: memoryview[int]) -> None:
        self._numbers = numbers
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._write = cast(asyncio.Transport, transport).write

    def data_received(self, data: bytes) -> None:
        if self._rest:
            data = self._rest + data
        numbers = self._numbers
        while (end := data.find(b"\r\n\r\n")) >= 0:
            at = data.lower().find(b"content-length:", 0, end) + 15
            whole = end + 4 + int(data[at : data.index(b"\r\n", at)])
            if len(data) < whole:
                break
            data = data[whole:]
            numbers[COUNT] += 1
            numbers[LAST] = time.monotonic_ns()
            if not numbers[FIRST]:
                numbers[FIRST] = numbers[LAST]
            self._write(ANSWER)
        self._rest = data


class Receiver:
    """The process, from the side of the one who measures."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="mz-")
        self._file = Path(self._place.name) / "numbers"
        self._file.write_bytes(bytes(8 * SIZE))
        command = [sys.executable, "-m", "bench.receiver", str(self._file)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        if not port:
            raise RuntimeError("The receiver does not start.")
        self.url = f"http://127.0.0.1:{port}/hook"
        self.port = int(port)
        self._map = _mapped(self._file)
        self._numbers = memoryview(self._map).cast("q")

    def begin(self) -> None:
        """Count from zero; nothing is on its way now."""
        for place in range(SIZE):
            self._numbers[place] = 0

    @property
    def count(self) -> int:
        return self._numbers[COUNT]

    @property
    def seconds(self) -> float:
        """From the first request to the last one."""
        return (self._numbers[LAST] - self._numbers[FIRST]) / 1e9

    def wait(self, count: int, patience: float = 30.0) -> None:
        """Until so many requests came; an error when none came for as long as the patience lasts."""
        seen, since = -1, time.monotonic()
        while (now := self.count) < count:
            if now != seen:
                seen, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                raise RuntimeError(f"{now} of {count} requests came, and no more.")
            time.sleep(0.02)

    def cpu(self) -> float:
        return usage.cpu_of(self._process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
        self._numbers.release()
        self._map.close()
        self._place.cleanup()


def _mapped(file: Path) -> mmap.mmap:
    with file.open("r+b") as opened:
        return mmap.mmap(opened.fileno(), 0)


async def serve(file: Path) -> None:
    """The life of the process: until it is terminated."""
    numbers = memoryview(_mapped(file)).cast("q")
    server = await asyncio.get_running_loop().create_server(lambda: Counting(numbers), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loops.factory()) as runner:
        runner.run(serve(Path(sys.argv[1])))
