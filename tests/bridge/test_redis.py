"""Streams of Valkey become messages."""

from __future__ import annotations

import asyncio
import json
import logging

import psycopg
import pytest

from menzil.bridge.runner import BridgeGoneError, Runner
from menzil.bridge.source import SourceError
from menzil.ops.bridges import Spec
from tests.bridge.stage import create, once, one, running, until, waiting
from tests.brokers.servers import Valkey
from tests.brokers.stage import entries, fresh, in_loop


@in_loop
async def test_entries_become_messages_once(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream, batch=7)
    async with entries(valkey.port) as client:
        for n in range(20):
            await client.xadd(stream, {"payload": json.dumps({"n": n}), "key": f"k{n % 3}"})
        assert (await once(db, "b")).taken == 20
        assert (await once(db, "b")).taken == 0
        await client.xadd(stream, {"payload": "1"})
        assert (await once(db, "b")).taken == 1
    assert waiting(conn) == [*({"n": n} for n in range(20)), 1]
    assert one(conn, "select count(distinct ordering_key) from menzil.queue") == 3


@in_loop
async def test_latest_means_the_moment_when_the_bridge_was_first_run(
    db: str, conn: psycopg.Connection, valkey: Valkey
) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream, start="latest")
    async with entries(valkey.port) as client:
        await client.xadd(stream, {"payload": "0"})
        assert (await once(db, "b")).taken == 0
        await client.xadd(stream, {"payload": "1"})  # while no process runs
        assert (await once(db, "b")).taken == 1
    assert waiting(conn) == [1]


@in_loop
async def test_a_trimmed_stream_is_said_and_read_on(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    async with entries(valkey.port) as client:
        for n in range(10):
            await client.xadd(stream, {"payload": str(n)})
        await client.xtrim(stream, maxlen=6, approximate=False)
        progress = await once(db, "b")
        assert (progress.taken, progress.lost) == (6, 0)  # it begins with what the stream still has
        for n in range(10, 13):
            await client.xadd(stream, {"payload": str(n)})
        await client.xtrim(stream, maxlen=1, approximate=False)
        progress = await once(db, "b")
        assert (progress.taken, progress.lost) == (1, 2)
    assert waiting(conn) == [4, 5, 6, 7, 8, 9, 12]
    assert one(conn, "select count(*) from menzil.event_log where event_type = 'bridge.gap'") == 1


@in_loop
async def test_a_stream_that_was_made_anew_is_not_read_from_an_old_position(
    db: str, conn: psycopg.Connection, valkey: Valkey
) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    async with entries(valkey.port) as client:
        await client.xadd(stream, {"payload": "1"}, id="9999999999999-0")
        assert (await once(db, "b")).taken == 1
        await client.delete(stream)
        await client.xadd(stream, {"payload": "2"})
        with pytest.raises(SourceError, match="made anew"):
            await once(db, "b")
        conn.execute("select menzil.bridge_seek('b', %s, '0-0')", (stream,))
        assert (await once(db, "b")).taken == 1


@in_loop
async def test_a_stream_that_was_made_anew_with_later_ids_is_read_on(
    db: str, conn: psycopg.Connection, valkey: Valkey
) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    async with entries(valkey.port) as client:
        for n in range(5):
            await client.xadd(stream, {"payload": str(n)})
        assert (await once(db, "b")).taken == 5
        await client.delete(stream)
        await client.xadd(stream, {"payload": "5"})
        progress = await once(db, "b")
    assert (progress.taken, progress.moved) == (1, 0)
    assert waiting(conn) == list(range(6))


@in_loop
async def test_once_ends_when_the_last_entries_were_deleted(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    async with entries(valkey.port) as client:
        ids = [await client.xadd(stream, {"payload": str(n)}) for n in range(3)]
        await client.xdel(stream, ids[-1])
        assert (await once(db, "b")).taken == 2
        await client.xdel(stream, *ids)
        assert (await once(db, "b")).taken == 0


@in_loop
async def test_poisoned_entries_become_dead_letters_and_block_nothing(
    db: str, conn: psycopg.Connection, valkey: Valkey
) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    conn.execute("select menzil.set_setting('max_payload_size', '2000')")
    bodies = [b"1", b"{", b"\xff\xfe", b'"a\\u0000b"', b"x\x00", b"[" * 50_000, json.dumps("x" * 3000).encode(), b"2"]
    async with entries(valkey.port) as client:
        for body in bodies:
            await client.xadd(stream, {"payload": body})
        await client.xadd(stream, {"payload": "3", "key": "k" * 1025})
        await client.xadd(stream, {"no_payload": "but fields", "n": "1"})
        await client.xadd(stream, {"payload": "4"})
        progress = await once(db, "b")
    assert (progress.taken, progress.refused) == (4, 7)
    assert waiting(conn) == [1, 2, {"no_payload": "but fields", "n": "1"}, 4]
    letters = conn.execute("select content, last_error, metadata -> 'bridge' from menzil.dlq order by id").fetchall()
    assert [row[0] for row in letters] == [body[:2000] for body in bodies[1:7]] + [b"3"]
    assert all(row[2]["partition"] == stream and "-" in row[2]["position"] for row in letters)
    assert letters[4][2]["cut"] is True
    assert letters[4][2]["bytes"] == 50_000
    assert "1025" in letters[-1][1]


@in_loop
async def test_repeated_fields_and_headers_do_not_vanish(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    async with entries(valkey.port) as client:
        for words in ("a 1 b 2 a 3", "payload 5 h:x 1 h:y 2 H:X 7 h:x 3", "payload 6 payload 7"):
            await client.execute_command("XADD", stream, "*", *words.split())
    progress = await once(db, "b")
    assert (progress.taken, progress.refused) == (2, 1)
    assert waiting(conn) == [{"a": ["1", "3"], "b": "2"}, 5]
    headers, left_out = one(
        conn, "select headers, metadata #> '{bridge,left_out}' from menzil.queue order by id desc limit 1"
    )
    assert (headers, left_out) == ({"x": "1", "y": "2"}, ["x"])
    assert one(conn, "select last_error from menzil.dlq") == "The entry has the field payload more than once."


@in_loop
async def test_an_error_does_not_repeat_the_body(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    bodies = [
        "canary",
        "c" * 1_000_000,
        '{"a": canary}',
        '["canary" "canary"]',
        '{"canary"',
        "canary\n\tcanary",
        '"\\canary"',
    ]
    async with entries(valkey.port) as client:
        for body in bodies:
            await client.xadd(stream, {"payload": body})
    assert (await once(db, "b")).refused == len(bodies)
    errors = [row[0] for row in conn.execute("select last_error from menzil.dlq order by id")]
    assert all(error.startswith("The body is not JSON that can be stored: ") for error in errors)
    assert not [error for error in errors if "can" in error.partition("stored: ")[2] or len(error) > 200]
    assert [len(row[0]) for row in conn.execute("select content from menzil.dlq order by id")] == [*map(len, bodies)]


@in_loop
async def test_two_processes_take_each_entry_once(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream, batch=10)
    async with entries(valkey.port) as client, running(db, "b") as first, running(db, "b") as second:
        for n in range(1000):
            await client.xadd(stream, {"payload": str(n)})
        await until(lambda: one(conn, "select taken from menzil.bridges") == 1000, "all entries")
        await until(lambda: first.progress.moved + second.progress.moved > 0, "a lost race")
    assert waiting(conn) == list(range(1000))


@in_loop
async def test_a_source_that_goes_away_comes_back(db: str, conn: psycopg.Connection) -> None:
    with Valkey(appendfsync="always") as server:
        create(conn, "b", "redis", host="127.0.0.1", port=server.port, stream="s")
        async with running(db, "b") as runner:
            async with entries(server.port) as client:
                await client.xadd("s", {"payload": "1"})
            await until(lambda: waiting(conn) == [1], "the first")
            server.kill()
            await until(lambda: runner.progress.error is not None, "a notice")
            await asyncio.to_thread(server.start)
            async with entries(server.port) as client:
                await client.xadd("s", {"payload": "2"})
            await until(lambda: waiting(conn) == [1, 2], "the second")
            await until(lambda: runner.progress.error is None, "a bridge without trouble")


@in_loop
async def test_a_full_channel_is_filled_to_its_limit_and_then_waited_for(
    db: str, conn: psycopg.Connection, valkey: Valkey
) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    conn.execute("select menzil.channel_set('work', p_max_size => 3)")
    async with entries(valkey.port) as client, running(db, "b") as runner:
        for n in range(10):
            await client.xadd(stream, {"payload": str(n)})
        await until(lambda: waiting(conn) == [0, 1, 2], "as many as there is room for")
        await until(lambda: runner.progress.error is not None, "a notice")
        conn.execute("select menzil.channel_set('work')")
        await until(lambda: waiting(conn) == list(range(10)), "the others")


@in_loop
async def test_a_bridge_before_a_full_channel_says_each_state_once(
    db: str, conn: psycopg.Connection, valkey: Valkey, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "menzil.bridge")
    opened, spec = [], Runner.spec

    async def counted(self: Runner) -> Spec:
        opened.append(self)
        return await spec(self)

    monkeypatch.setattr(Runner, "spec", counted)
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    conn.execute("select menzil.channel_set('work', p_max_size => 3)")
    async with entries(valkey.port) as client, running(db, "b"):
        for n in range(10):
            await client.xadd(stream, {"payload": str(n)})
        await until(lambda: len(opened) > 4, "several tries")
        conn.execute("select menzil.channel_set('work', p_max_size => 5)")
        await until(lambda: len(waiting(conn)) == 5, "two more")
        tries = len(opened)
        await until(lambda: len(opened) > tries + 1, "another try")
        conn.execute("select menzil.channel_set('work')")
        await until(lambda: waiting(conn) == list(range(10)), "the others")
        await until(lambda: "resumed" in caplog.text, "the news")
    said = [record.getMessage().partition(" ")[0] for record in caplog.records]
    assert said == ["opened", "waiting", "resumed"]


@in_loop
async def test_a_bridge_that_is_dropped_ends_its_process(db: str, conn: psycopg.Connection, valkey: Valkey) -> None:
    stream = fresh("in")
    create(conn, "b", "redis", host="127.0.0.1", port=valkey.port, stream=stream)
    runner = Runner("b", db)
    task = asyncio.create_task(runner.run(asyncio.Event()))
    await until(lambda: one(conn, "select count(*) from menzil.bridge_positions") == 1, "a bridge at work")
    conn.execute("select menzil.bridge_drop('b')")
    async with entries(valkey.port) as client:
        await client.xadd(stream, {"payload": "1"})
    with pytest.raises(BridgeGoneError, match="There is no bridge named 'b'"):
        await task
