"""Handlers on a real queue, in a worker inside this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

import psycopg
import pytest

import menzil
from tests.acceptance.crew import Crew, until


@pytest.fixture
def app(db: str) -> menzil.Worker:
    return menzil.Worker(db, endpoints=False, janitors=False)


def state(crew: Crew, id: int) -> tuple[Any, ...]:
    """Status, retries and last error of one message, wherever it is."""
    row = crew.conn.execute(
        "select status, retry_count, last_error from menzil.queue where id = %(id)s union all"
        " select status, retry_count, last_error from menzil.archive where id = %(id)s",
        {"id": id},
    ).fetchone()
    assert row is not None
    return tuple(row)


async def _cancels_itself() -> None:
    inner = asyncio.create_task(asyncio.sleep(60))
    await asyncio.sleep(0)
    inner.cancel()
    await inner


async def _raises(error: BaseException) -> None:
    raise error


FAILURES: dict[str, tuple[Callable[[], Any], str]] = {
    "an exception": (lambda: _raises(ValueError("bad \x00 value")), "ValueError: bad \\x00 value (in _raises"),
    "the end of the program": (lambda: _raises(SystemExit(3)), "SystemExit: 3"),
    "an interrupt": (lambda: _raises(KeyboardInterrupt()), "KeyboardInterrupt"),
    "the end of the program, in a task": (lambda: asyncio.gather(_raises(SystemExit(0))), "SystemExit: 0"),
    "a cancelled part": (_cancels_itself, "CancelledError"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_whatever_a_handler_raises_is_a_failure_that_is_tried_again(crew: Crew, app: menzil.Worker, what: str) -> None:
    do, said = FAILURES[what]

    @app.handler("work")
    async def handle(message: menzil.Message) -> None:
        await do()

    (id,) = crew.send("work", "x")
    tally = app.run(once=True)
    status, retries, error = state(crew, id)
    assert (status, retries, tally.failed) == ("pending", 1, 1)
    assert said in error


def test_outcomes_do_what_they_say(crew: Crew, app: menzil.Worker) -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    answers = {
        "done": menzil.Complete({"status": 200}),
        "later": menzil.Defer(until=later, state=b"half"),
        "never": menzil.Fail("no such customer", retry=False),
        "soon": menzil.Fail("busy", retry=3600.0),
        "odd": "odd",
    }

    @app.handler("work")
    def handle(message: menzil.Message) -> Any:
        return answers[message.payload]

    ids = dict(zip(answers, crew.send("work", *answers), strict=True))
    tally = app.run(once=True)
    assert (tally.delivered, tally.deferred, tally.failed, tally.dead) == (1, 1, 3, 1)
    assert state(crew, ids["done"]) == ("completed", 0, None)
    assert state(crew, ids["later"]) == ("pending", 0, None)
    assert state(crew, ids["never"]) == ("failed", 0, "[PERMANENT] no such customer")
    assert state(crew, ids["soon"]) == ("pending", 1, "[RETRYABLE] busy")
    assert "returned a value of type str" in state(crew, ids["odd"])[2]
    assert crew.ask("select state from menzil.queue where id = %s", ids["later"]) == b"half"


def test_an_outcome_that_the_database_refuses_fails_that_message_only(crew: Crew, app: menzil.Worker) -> None:
    crew.ask("select menzil.set_setting('max_payload_size', '1024')")

    @app.handler("work")
    async def handle(message: menzil.Message) -> Any:
        match message.payload:
            case "large":
                return menzil.Defer(state=b"x" * 5000)
            case "zoneless":
                return menzil.Defer(until=datetime(2030, 1, 1))
            case "negative":
                return menzil.Fail("no", retry=-1.0)
            case _:
                return None

    bodies = ["a", "large", "b", "zoneless", "c", "negative", "d"]
    ids = dict(zip(bodies, crew.send("work", *bodies), strict=True))
    tally = app.run(once=True)
    assert (tally.delivered, tally.failed) == (4, 3)
    for body in ("large", "zoneless", "negative"):
        status, retries, error = state(crew, ids[body])
        assert (status, retries) == ("pending", 1)
        assert error.startswith("[RETRYABLE] The database refused to settle this")


def test_a_failure_with_an_odd_reason_or_response_fails_that_message_only(crew: Crew, app: menzil.Worker) -> None:
    circle: dict[str, Any] = {"password": "x"}
    circle["self"] = [circle]
    odd: dict[str, Any] = {
        "caught": menzil.Fail(ValueError("too late")),  # type: ignore[arg-type]
        "forgotten": menzil.Fail(None),
        "number": menzil.Fail("no", response=5),  # type: ignore[arg-type]
        "circle": menzil.Complete(response=circle),
    }

    @app.handler("work", concurrency=1)
    async def handle(message: menzil.Message) -> Any:
        return odd.get(message.payload)

    ids = dict(zip([*odd, "well"], crew.send("work", *odd, "well"), strict=True))
    tally = app.run(once=True)
    assert (tally.delivered, tally.failed) == (1, 4)
    assert [state(crew, ids[body])[2] for body in odd] == [
        "[RETRYABLE] ValueError: too late",
        "[RETRYABLE] The handler of work returned a Fail without a reason.",
        "[RETRYABLE] no",
        "[RETRYABLE] The database refused to settle this Complete: Circular reference detected",
    ]


class UnlookableError(Exception):
    """An error of which nothing can be asked."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("__traceback__", "__cause__", "__context__", "args"):
            raise RuntimeError(name)
        return super().__getattribute__(name)


class Moving(dict[str, Any]):
    """A dictionary that another thread changes while it is read."""

    def items(self) -> Any:
        raise RuntimeError("dictionary changed size during iteration")


@pytest.mark.parametrize("kind", ["slot", "transaction"])
def test_what_cannot_be_looked_at_fails_its_message_and_keeps_no_slot(
    crew: Crew, app: menzil.Worker, kind: str
) -> None:
    def handle(message: menzil.Message, *_: object) -> Any:
        match message.payload:
            case "error":
                raise UnlookableError
            case "answer":
                return menzil.Complete(response=Moving(a=1))
            case _:
                return None

    app.handler("work", concurrency=1, transaction=kind == "transaction" or None)(handle)
    bodies = ["error", "answer", "well"]
    ids = dict(zip(bodies, crew.send("work", *bodies), strict=True))
    tally = asyncio.run(asyncio.wait_for(app.serve(once=True), 60))
    assert (tally.delivered, tally.failed) == (1, 2)
    assert state(crew, ids["well"])[0] == "completed"
    assert [state(crew, ids[body])[:2] for body in bodies[:2]] == [("pending", 1)] * 2
    assert "dictionary changed size" in state(crew, ids["answer"])[2]


def test_a_payload_that_cannot_be_read_fails_that_message_only(crew: Crew, app: menzil.Worker) -> None:
    @app.handler("work")
    async def handle(message: menzil.Message) -> None:
        assert message.payload is not None

    crew.send("work", "a")
    deep = crew.ask("select menzil.send('work', (repeat('[', 5000) || repeat(']', 5000))::jsonb)")
    crew.send("work", "b")
    tally = app.run(once=True)
    assert (tally.delivered, tally.failed) == (2, 1)
    assert "RecursionError" in state(crew, deep)[2]


def test_writes_and_the_end_of_a_message_commit_together(crew: Crew, app: menzil.Worker) -> None:
    crew.conn.execute("create table effect (word text)")

    @app.handler("work", transaction=True)
    async def handle(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> Any:
        await conn.execute("insert into effect values (%s)", (message.payload,))
        match message.payload:
            case "wrong":
                raise ValueError("wrong")
            case "fail":
                return menzil.Fail("no", retry=False)
            case "defer":
                return menzil.Defer(seconds=3600)
            case "commit":
                await conn.commit()
        return None

    bodies = ["done", "wrong", "fail", "defer", "commit"]
    ids = dict(zip(bodies, crew.send("work", *bodies), strict=True))
    tally = app.run(once=True)
    assert crew.ask("select array_agg(word order by word) from effect") == ["defer", "done"]
    assert (tally.delivered, tally.deferred, tally.failed, tally.dead) == (1, 1, 3, 1)
    assert state(crew, ids["done"])[0] == "completed"
    assert "commit" in state(crew, ids["commit"])[2]


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("word", ["commit", "rollback"])
def test_a_handler_that_ends_its_transaction_in_sql_has_failed(
    crew: Crew, app: menzil.Worker, kind: str, word: LiteralString
) -> None:
    """Its effect would be lost, or there twice, and the message would be completed."""
    crew.conn.execute("create table effect (word text)")

    def handle(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
        conn.execute("insert into effect values ('x')")
        conn.execute(word)

    async def handle_async(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
        await conn.execute("insert into effect values ('x')")
        await conn.execute(word)

    app.handler("work", transaction=True)(handle if kind == "sync" else handle_async)
    (sent,) = crew.send("work", "x")
    tally = app.run(once=True)
    assert (tally.delivered, tally.failed) == (0, 1)
    assert "The handler of work ended its transaction with COMMIT or ROLLBACK." in state(crew, sent)[2]


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_a_lost_lease_rolls_back_what_the_handler_wrote(crew: Crew, app: menzil.Worker, kind: str) -> None:
    crew.conn.execute("create table effect (word text)")

    def steal(message: menzil.Message) -> None:
        if message.attempt == 1:
            over = "update menzil.lease set unlock_at = now(), watch_at = now() where %s between lo_id and hi_id"
            assert crew.conn.execute(over, (message.id,)).rowcount == 1
            assert crew.ask("select menzil.recover_stale_messages()") == 1

    def handle(message: menzil.Message, conn: psycopg.Connection[Any]) -> None:
        conn.execute("insert into effect values (%s)", (f"attempt {message.attempt}",))
        steal(message)

    async def handle_async(message: menzil.Message, conn: psycopg.AsyncConnection[Any]) -> None:
        await conn.execute("insert into effect values (%s)", (f"attempt {message.attempt}",))
        steal(message)

    app.handler("work", transaction=True)(handle if kind == "sync" else handle_async)
    crew.send("work", "x")
    tally = app.run(once=True)
    assert crew.ask("select array_agg(word) from effect") == ["attempt 2"]
    assert (tally.delivered, tally.lost) == (1, 1)


def test_the_inbox_says_yes_once_on_both_kinds_of_connections(crew: Crew, db: str) -> None:
    message = menzil.Message(7, "work")
    with psycopg.connect(db) as conn:
        assert menzil.inbox(conn, message, consumer="mail")
        assert not menzil.inbox(conn, message, consumer="mail")
        assert menzil.inbox(conn, message, consumer="audit")
        assert menzil.inbox(conn, "order-42", consumer="mail")
        conn.rollback()
        assert menzil.inbox(conn, message, consumer="mail")

    async def awaited() -> bool:
        async with await psycopg.AsyncConnection.connect(db) as conn:
            return await menzil.inbox(conn, message, consumer="mail")

    assert asyncio.run(awaited()) is False
    with pytest.raises(menzil.UsageError):
        menzil.inbox(object(), message, consumer="mail")  # type: ignore[call-overload]


def test_a_handler_with_a_concurrency_of_its_own_keeps_to_it(crew: Crew, app: menzil.Worker) -> None:
    running, most = {"one": 0, "many": 0}, {"one": 0, "many": 0}
    crowded = asyncio.Event()

    async def handle(message: menzil.Message) -> None:
        running[message.channel] += 1
        most[message.channel] = max(most[message.channel], running[message.channel])
        if running["one"] and running["many"] > 10:
            crowded.set()
        async with asyncio.timeout(30):
            await crowded.wait()
        await asyncio.sleep(0)
        running[message.channel] -= 1

    app.handler("one", concurrency=1)(handle)
    app.handler("many")(handle)
    crew.send("one", *range(10))
    crew.send("many", *range(50))
    app.run(once=True)
    assert most["one"] == 1
    assert most["many"] > 10
    assert crew.completed("one") == 10


def test_a_worker_lives_inside_a_program_with_its_own_loop(crew: Crew, app: menzil.Worker) -> None:
    async def program() -> menzil.worker.Tally:
        done = asyncio.Event()

        @app.handler("work")
        async def handle(message: menzil.Message) -> None:
            done.set()

        serving = asyncio.create_task(app.serve())
        async with menzil.AsyncMenzil(crew.dsn) as mq:
            await mq.channel_set("work")
            await mq.send("work", 1)
            await asyncio.wait_for(done.wait(), 30)
        with pytest.raises(menzil.UsageError, match="runs already"):
            await app.serve()
        app.stop()
        return await serving

    assert asyncio.run(program()).delivered == 1
    assert crew.ask("select count(*) from menzil.queue") == 0


def test_cancelling_serve_hands_everything_back(crew: Crew, app: menzil.Worker) -> None:
    async def program() -> None:
        begun = asyncio.Event()

        @app.handler("work")
        async def handle(message: menzil.Message) -> None:
            begun.set()
            await asyncio.sleep(600)

        crew.send("work", "x")
        serving = asyncio.create_task(app.serve())
        await asyncio.wait_for(begun.wait(), 30)
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving

    asyncio.run(program())
    assert crew.ask("select count(*) from menzil.queue where status = 'pending' and retry_count = 0") == 1


def test_what_was_leased_ahead_goes_back_when_deliveries_become_slow(crew: Crew, app: menzil.Worker) -> None:
    async def program() -> list[int]:
        stuck = asyncio.Event()

        @app.handler("work", concurrency=1)
        async def handle(message: menzil.Message) -> None:
            if message.payload == "slow":
                stuck.set()
                await asyncio.sleep(600)

        crew.send("work", *["fast"] * 500, "slow", *["behind"] * 20)
        serving = asyncio.create_task(app.serve())
        await asyncio.wait_for(stuck.wait(), 30)
        async with menzil.AsyncMenzil(crew.dsn) as mq:
            taken: list[int] = []
            async with asyncio.timeout(30):
                while len(taken) < 20:  # somebody else is free
                    taken += [message.id for message in await mq.dequeue(20, channels="work")]
                    await asyncio.sleep(0.01)
        app.stop(force=True)
        await serving
        return taken

    assert len(asyncio.run(program())) == 20
    assert crew.ask("select max(retry_count) from menzil.queue") == 0


def test_a_handler_that_closes_standard_error_does_not_end_the_worker(crew: Crew) -> None:
    (id,) = crew.send("mute", "x")
    crew.send("quick")
    worker = crew.start()
    until(lambda: crew.ask("select retry_count from menzil.queue where id = %s", id) == 1, "the failure")
    crew.send("quick", "afterwards")
    until(lambda: crew.completed("quick") == 1, "the message after it")
    assert worker.stop() == 0
