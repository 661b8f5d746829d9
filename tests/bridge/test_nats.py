"""Streams of JetStream become messages."""

from __future__ import annotations

import asyncio
from typing import Any

import nats.js.api
import psycopg
import pytest
from psycopg.types.json import Jsonb

from menzil.bridge.looking import looked_at
from menzil.bridge.source import SourceError
from tests.bridge.stage import create, once, one, running, until, waiting
from tests.brokers.servers import NatsServer
from tests.brokers.stage import fresh, in_loop, jetstream


def source(conn: psycopg.Connection, port: int, stream: str, **config: Any) -> None:
    create(conn, "b", "nats", servers=[f"127.0.0.1:{port}"], stream=stream, **config)


@in_loop
async def test_messages_of_a_stream_become_messages_once(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream, batch=7)
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context:
        for n in range(20):
            await context.publish(f"{stream}.a", b"%d" % n, headers={"menzil-key": f"k{n % 3}", "x-tenant": "t"})
        assert (await once(db, "b")).taken == 20
        assert (await once(db, "b")).taken == 0
        await context.publish(f"{stream}.b", b"20", headers={"Nats-Msg-Id": "m1"})
        assert (await once(db, "b")).taken == 1
    assert waiting(conn) == list(range(21))
    assert one(conn, "select count(distinct ordering_key) from menzil.queue") == 3
    headers, about = one(conn, "select headers, metadata -> 'bridge' from menzil.queue order by id limit 1")
    assert headers == {"x-tenant": "t"}
    assert about == {"name": "b", "partition": stream, "position": "1", "subject": f"{stream}.a"}
    assert one(conn, "select metadata #>> '{bridge,id}' from menzil.queue order by id desc limit 1") == "m1"


@in_loop
async def test_only_the_messages_of_a_subject(db: str, conn: psycopg.Connection, nats_server: NatsServer) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream, subject=f"{stream}.a.>")
    async with jetstream(nats_server.port, stream, f"{stream}.>") as context:
        assert (await once(db, "b")).taken == 0
        for n in range(6):
            await context.publish(f"{stream}.{'ab'[n % 2]}.x", b"%d" % n)
        progress = await once(db, "b")
    assert (progress.taken, progress.lost) == (3, 0)
    assert waiting(conn) == [0, 2, 4]


@pytest.mark.parametrize("subject", [None, "*"])
def test_messages_that_the_stream_removed_are_said(
    db: str, conn: psycopg.Connection, nats_server: NatsServer, subject: str | None
) -> None:
    @in_loop
    async def test() -> None:
        stream = fresh("IN")
        source(conn, nats_server.port, stream, **({"subject": f"{stream}.*"} if subject else {}))
        async with jetstream(nats_server.port, stream, f"{stream}.*", max_msgs=5) as context:
            for n in range(8):
                await context.publish(f"{stream}.a", b"%d" % n)
            progress = await once(db, "b")
            assert (progress.taken, progress.lost) == (5, 0)  # it begins with what the stream still has
            for n in range(8, 15):
                await context.publish(f"{stream}.a", b"%d" % n)
            progress = await once(db, "b")
            assert (progress.taken, progress.lost) == (5, 2)
        assert waiting(conn) == [3, 4, 5, 6, 7, 10, 11, 12, 13, 14]
        assert one(conn, "select lost from menzil.bridges") == 2

    test()


@in_loop
async def test_removed_messages_of_other_subjects_are_no_gap(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream, subject=f"{stream}.a")
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context:
        await context.publish(f"{stream}.a", b"0")
        for n in range(10):
            await context.publish(f"{stream}.b", b"%d" % n)
        progress = await once(db, "b")
        assert (progress.taken, progress.lost) == (1, 0)
        await context.purge_stream(stream, keep=2)  # nothing of ours among what goes
        await context.publish(f"{stream}.a", b"1")
        progress = await once(db, "b")
        assert (progress.taken, progress.lost) == (1, 0)
        # What came after the last look, and went before the next, may have been ours: 4 of a, and 3 of b.
        for n in range(7):
            await context.publish(f"{stream}.{'ab'[n % 2]}", b"9")
        await context.purge_stream(stream)
        await context.publish(f"{stream}.a", b"2")
        progress = await once(db, "b")
        assert (progress.taken, progress.lost) == (1, 7)
        # Where it stands can be given back as it is shown.
        at = one(conn, "select position from menzil.bridge_positions")
        await context.publish(f"{stream}.b", b"3")
        await once(db, "b")
        shown = one(conn, "select position from menzil.bridge_positions")
        assert shown != at
        conn.execute("select menzil.bridge_seek('b', %s, %s)", (stream, shown))
        assert (await once(db, "b")).taken == 0
    assert waiting(conn) == [0, 1, 2]


@in_loop
async def test_a_bridge_at_work_passes_messages_of_other_subjects(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream, subject=f"{stream}.a")
    where = "select split_part(split_part(position, '#', 1), '~', 2) from menzil.bridge_positions"
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context, running(db, "b"):
        for _ in range(5):
            await context.publish(f"{stream}.b", b"0")
        await until(lambda: one(conn, where) == "5", "a position behind the others")
        await context.publish(f"{stream}.a", b"1")
        await until(lambda: waiting(conn) == [1], "the message")
        assert one(conn, "select lost from menzil.bridges") == 0


@in_loop
async def test_a_stream_that_was_made_anew_is_not_read_from_an_old_position(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream)
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context:
        await context.publish(f"{stream}.a", b"1")
        assert (await once(db, "b")).taken == 1
        await context.delete_stream(stream)
        await context.add_stream(nats.js.api.StreamConfig(name=stream, subjects=[f"{stream}.*"]))
        with pytest.raises(SourceError, match="made anew"):
            await once(db, "b")
        conn.execute("select menzil.bridge_seek('b', %s, '0')", (stream,))
        await context.publish(f"{stream}.a", b"2")
        assert (await once(db, "b")).taken == 1
    assert waiting(conn) == [1, 2]


@in_loop
async def test_a_stream_that_was_made_anew_and_is_longer_by_now_is_not_read_on(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream)
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context:
        for n in range(3):
            await context.publish(f"{stream}.a", b"%d" % n)
        assert (await once(db, "b")).taken == 3
        await context.delete_stream(stream)
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context:
        for n in range(3, 8):
            await context.publish(f"{stream}.a", b"%d" % n)
        with pytest.raises(SourceError, match="made anew"):
            await once(db, "b")
        conn.execute("select menzil.bridge_seek('b', %s, '000')", (stream,))
        assert (await once(db, "b")).taken == 5
    assert waiting(conn) == list(range(8))


@in_loop
async def test_once_ends_when_the_last_messages_were_deleted(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream)
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context:
        for n in range(5):
            await context.publish(f"{stream}.a", b"%d" % n)
        await context.delete_msg(stream, 5)
        assert (await once(db, "b")).taken == 4
        await context.purge_stream(stream)
        assert (await once(db, "b")).taken == 0


@in_loop
async def test_a_question_does_not_hide_the_end_of_a_pull(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    stream = fresh("IN")
    source(conn, nats_server.port, stream)
    async with jetstream(nats_server.port, stream, f"{stream}.*") as context, looked_at(db, "b") as (_, opened):
        await context.publish(f"{stream}.a", b"0")
        assert await opened.read(500, 1) is not None  # the rest of the pull is still under way
        assert await opened.lags() == {stream: 0}
        started = asyncio.get_running_loop().time()
        assert await opened.read(500, 1) is None  # and not "No answer within 10 s"
        assert asyncio.get_running_loop().time() - started < 10


@in_loop
async def test_an_error_that_no_code_expects_is_a_sentence(
    db: str, conn: psycopg.Connection, nats_server: NatsServer
) -> None:
    source(conn, nats_server.port, "ANY")
    change = '{"auth": {"type": "token"}}'  # a config that is checked by a newer version only
    conn.execute("update menzil.bridge set config = config || %s::jsonb", (change,))
    with pytest.raises(SourceError, match="KeyError"):
        await once(db, "b")
    async with running(db, "b") as runner:  # which waits, as for any other trouble
        await until(lambda: runner.progress.error is not None, "the error")


@in_loop
async def test_a_missing_stream_and_a_wrong_password_are_sentences(db: str, conn: psycopg.Connection) -> None:
    with NatsServer(lines='authorization { user: "u", password: "secret-word" }') as server:
        auth = {"type": "password", "username": "u", "password": "secret-word"}
        source(conn, server.port, "NONE", auth=auth)
        with pytest.raises(SourceError, match="stream not found"):
            await once(db, "b")
        bad: dict[str, Any] = {"servers": [f"127.0.0.1:{server.port}"], "stream": "S", "start": "earliest"}
        bad["auth"] = {**auth, "password": "other-word"}
        conn.execute("select menzil.bridge_alter('b', %s)", (Jsonb(bad),))
        with pytest.raises(SourceError, match="Authorization Violation") as caught:
            await once(db, "b")
        assert "other-word" not in str(caught.value)


@in_loop
async def test_a_server_that_goes_away_comes_back(db: str, conn: psycopg.Connection) -> None:
    with NatsServer() as server:
        source(conn, server.port, "S")
        async with jetstream(server.port, "S", "s") as context:
            await context.publish("s", b"1")
        async with running(db, "b") as runner:
            await until(lambda: waiting(conn) == [1], "the first")
            server.kill()
            await until(lambda: runner.progress.error is not None, "a notice")
            await asyncio.to_thread(server.start)
            async with jetstream(server.port, "T", "t"):
                client = await nats.connect(f"nats://127.0.0.1:{server.port}")
                await client.jetstream().publish("s", b"2")
                await client.close()
            await until(lambda: waiting(conn) == [1, 2], "the second")
