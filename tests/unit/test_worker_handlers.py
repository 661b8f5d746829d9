"""Handlers without a database: what may be registered, and what their answers and errors become."""

from __future__ import annotations

import asyncio
import functools
import math
import re
import threading
from typing import Any

import pytest
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import async_sessionmaker

import menzil
from menzil.worker import outcomes, trace
from menzil.worker.address import Address
from menzil.worker.handler import Handler
from menzil.worker.log import Hide
from menzil.worker.threads import Threads

HIDE = Hide(["s3cret"])


async def waits(message: menzil.Message) -> None: ...


def works(message: menzil.Message) -> None: ...


def books(message: menzil.Message, conn: Any) -> None: ...


async def books_later(message: menzil.Message, conn: Any) -> None: ...


def yields(message: menzil.Message) -> Any:
    yield


async def yields_later(message: menzil.Message) -> Any:
    yield


class Callable:
    async def __call__(self, message: menzil.Message) -> None: ...


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (waits, True),
        (works, False),
        (functools.partial(waits), True),
        (Callable(), True),
        (lambda message: None, False),
    ],
)
def test_functions_of_every_kind_may_be_handlers(function: Any, is_async: bool) -> None:
    assert Handler(("emails",), function).is_async is is_async


@pytest.mark.parametrize(
    ("channels", "function", "options", "said"),
    [
        ((), works, {}, "names of its channels"),
        (("emails",), books, {}, "cannot take"),
        (("emails",), works, {"transaction": True}, "cannot take"),
        (("emails",), works, {"concurrency": 0}, "1 or more"),
        (("emails",), works, {"concurrency": "3"}, "whole number"),
        (("emails",), yields, {}, "has a yield"),
        (("emails",), yields_later, {}, "has a yield"),
        (("emails",), works, {"lease": 0.5}, "1 second to 7 days"),
        (("emails",), works, {"lease": 604_801}, "1 second to 7 days"),
        (("emails",), "works", {}, "must be a function"),
    ],
)
def test_a_handler_that_could_never_work_is_refused_when_it_is_written(
    channels: tuple[str, ...], function: Any, options: dict[str, Any], said: str
) -> None:
    app = menzil.Worker("postgresql:///nowhere")
    with pytest.raises(menzil.UsageError, match=said):
        app.handler(*channels, **options)(function)


@pytest.mark.parametrize("function", [works, waits])
def test_a_handler_without_parentheses_is_refused_with_a_sentence(function: Any) -> None:
    app = menzil.Worker("postgresql:///nowhere")
    with pytest.raises(menzil.UsageError, match=r"@app\.handler needs the names") as refused:
        app.handler(function)
    assert refused.value.hint == 'write @app.handler("emails")'
    with pytest.raises(menzil.UsageError, match="needs the names"):
        app.handler()
    with pytest.raises(menzil.UsageError, match="needs the names"):
        app.handler(["emails"])  # type: ignore[call-overload]


MAKER, ASYNC_MAKER = orm.sessionmaker(), async_sessionmaker()


@pytest.mark.parametrize(
    ("function", "transaction", "said"),
    [
        (works, "djnago", "'djnago' is not known"),
        (works, "django:", "is not known"),
        (waits, "django", "is async, and Django's transactions are not"),
        (books, "django", "cannot take \\(message\\)"),
        (works, MAKER, "cannot take \\(message, session\\)"),
        (books, ASYNC_MAKER, "is a plain function, and its sessions are async"),
        (books_later, MAKER, "is async, and its sessions are not"),
        (books, orm.scoped_session(MAKER), "scoped session"),
        (books, orm.Session(), "new session for each message"),
        (books, 1, "cannot be int"),
    ],
)
def test_a_transaction_that_could_never_work_is_refused(function: Any, transaction: Any, said: str) -> None:
    app = menzil.Worker("postgresql:///nowhere")
    with pytest.raises(menzil.UsageError, match=said):
        app.handler("emails", transaction=transaction)(function)


def test_a_misspelled_django_is_recognised() -> None:
    with pytest.raises(menzil.UsageError) as refused:
        menzil.Worker("postgresql:///nowhere").handler("emails", transaction="djnago")(works)
    assert refused.value.hint is not None
    assert 'did you mean "django"?' in refused.value.hint


def test_a_channel_has_one_handler() -> None:
    app = menzil.Worker("postgresql:///nowhere")
    assert app.handler("emails", "letters")(works) is works
    with pytest.raises(menzil.UsageError, match="'letters' already has a handler"):
        app.handler("letters")(waits)


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": 0},
        {"concurrency": "3"},
        {"threads": 0},
        {"max_bytes": 0},
        {"channels": "emails"},
        {"lease": 0.1},
        {"lease": 604_801},
        {"lease": math.nan},
        {"grace": math.nan},
        {"batch": 0},
        {"grace": -1},
        {"poll": (1.0, 0.5)},
        {"name": ""},
        {"secret_key": "x"},
    ],
)
def test_a_worker_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(menzil.UsageError):
        menzil.Worker("postgresql:///nowhere", **options)


def test_a_password_never_shows_in_the_refusal_of_a_dsn() -> None:
    with pytest.raises(menzil.UsageError) as refused:
        menzil.Worker("postgresql://me:s3cret@[nowhere")
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("dsn", ["postgresql://me:s%40cr%2Fet@host/shop", "user=me password='s@cr/et'"])
def test_a_password_stays_out_of_a_text_that_repeats_the_dsn_as_it_was_written(dsn: str) -> None:
    hide = Hide(Address(dsn).secrets())
    for text in (f"cannot connect to {dsn}", "no route to s%40cr%2Fet@host", "the password s@cr/et is wrong"):
        said = hide(text)
        assert "********" in said
        assert "s@cr/et" not in said
        assert "s%40cr%2Fet" not in said


def test_returning_nothing_is_done() -> None:
    assert outcomes.read(None, "works") == menzil.Complete()


@pytest.mark.parametrize("outcome", [menzil.Complete(), menzil.Defer(seconds=3), menzil.Fail("no", retry=False)])
def test_an_outcome_is_taken_as_it_is(outcome: menzil.Outcome) -> None:
    assert outcomes.read(outcome, "works") == outcome


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (True, "type bool"),
        ({"ok": 1}, "type dict"),
        (menzil.Defer, r"write Defer\(…\)"),
        (waits(menzil.Message(1, "a")), "async def"),
    ],
)
def test_any_other_answer_is_a_failure_that_says_what_was_wrong(result: object, said: str) -> None:
    failed = outcomes.read(result, "works")
    assert isinstance(failed, menzil.Fail)
    assert failed.retry is True
    assert re.search(said, failed.reason), failed.reason


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (ValueError("too late"), "ValueError: too late"),
        (menzil.StaleLeaseError("late"), "menzil.model.errors.StaleLeaseError: late"),
        (KeyError(), "KeyError"),
        (None, "The handler of works returned a Fail without a reason."),
        (404, "404"),
    ],
)
def test_a_failure_whose_reason_is_not_a_text_gets_one(reason: Any, said: str) -> None:
    assert outcomes.read(menzil.Fail(reason, retry=7), "works") == menzil.Fail(said, retry=7)


def test_an_exception_says_its_kind_its_text_and_its_place() -> None:
    try:
        int("three")
    except ValueError as error:
        failed = outcomes.failure(error, HIDE)
    assert failed.reason.startswith("ValueError: invalid literal for int() with base 10: 'three' (in test_an_exception")
    assert "test_worker_handlers.py:" in failed.reason
    assert failed.retry is True


def test_an_exception_of_a_library_says_whose_it_is() -> None:
    assert outcomes.failure(menzil.StaleLeaseError("late"), HIDE).reason.startswith(
        "menzil.model.errors.StaleLeaseError: late"
    )


def test_secrets_and_endless_texts_stay_out_of_errors() -> None:
    reason = outcomes.failure(RuntimeError("password=s3cret " + "x" * 100_000), HIDE).reason
    assert "s3cret" not in reason
    assert len(reason) < 3000


def test_an_exception_whose_text_cannot_be_read_is_still_a_failure() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert "OddError: (its text cannot be read)" in outcomes.failure(OddError(), HIDE).reason


def test_an_exception_that_cannot_be_looked_at_is_still_a_failure() -> None:
    class OddError(Exception):
        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    assert outcomes.failure(OddError(), HIDE).reason.endswith("OddError: (its text cannot be read)")
    assert trace.full(OddError(), HIDE).endswith("OddError: (its traceback cannot be read)")


def test_threads_are_used_again_and_a_hanging_one_is_given_up() -> None:
    async def story() -> None:
        threads, gate, names = Threads(), threading.Event(), set[str]()

        def work(number: int) -> int:
            names.add(threading.current_thread().name + str(threading.get_ident()))
            return number * 2

        for number in range(50):
            assert await threads.start(work, number) == number * 2
        assert len(names) == 1
        hanging = threads.start(gate.wait)
        hanging.cancel()
        assert await threads.start(work, 4) == 8
        with pytest.raises(SystemExit):
            await threads.start(exit, 3)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await threads.start(next, iter(()))
        gate.set()
        threads.close()

    asyncio.run(story())
