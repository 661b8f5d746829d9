"""Tracebacks of handlers: which frames are kept, and what bounds them."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import menzil
from menzil.worker import outcomes, trace
from menzil.worker.log import Hide

HIDE = Hide(["s3cret"])


def frames(error: BaseException) -> str:
    response = outcomes.failure(error, HIDE).response
    assert response is not None
    text: str = response["traceback"]
    return text


def caught(function: Any, *args: Any) -> BaseException:
    try:
        function(*args)
    except BaseException as error:
        return error
    raise AssertionError("it raised nothing")


def charge(order: Any) -> int:
    return price(order)


def price(order: Any) -> int:
    amount: int = json.loads(order)["amount"]
    return amount


def test_the_callers_of_the_line_that_failed_are_kept() -> None:
    kept = frames(caught(charge, '{"order": 1}'))
    lines = [line for line in kept.splitlines() if line.startswith("File")]
    assert [line.split(", in ")[1] for line in lines] == ["caught", "charge", "price"]
    assert "return price(order)" in kept
    assert "test_worker_trace.py" in lines[0]


def test_frames_of_libraries_are_left_out_but_for_the_one_that_raised() -> None:
    kept = frames(caught(charge, "{"))
    names = [line.split(", in ")[1] for line in kept.splitlines() if line.startswith("File")]
    assert names == ["caught", "charge", "price", "raw_decode"]  # between: loads and decode of json


def test_what_an_error_was_raised_from_is_kept_too() -> None:
    def handle() -> None:
        try:
            charge('{"order": "s3cret"}')
        except KeyError as error:
            raise RuntimeError("no price") from error

    kept = frames(caught(handle))
    assert "caused by KeyError: 'amount'" in kept
    assert kept.index("in handle") < kept.index("caused by KeyError") < kept.index("in price")


def test_what_failed_in_a_group_of_tasks_is_kept() -> None:
    async def part() -> None:
        charge('{"order": 1}')

    async def handle() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(part())

    kept = frames(caught(asyncio.run, handle()))
    assert "caused by KeyError" in kept
    assert "in price" in kept


def test_a_deep_recursion_stays_small() -> None:
    def deeper(depth: int) -> None:
        deeper(depth + 1)

    error = caught(deeper, 0)
    assert len(frames(error)) <= trace.KEPT + 10
    assert len(trace.full(error, HIDE)) <= trace.LOGGED + 10
    assert len(trace.full(ValueError("x" * 1_000_000), HIDE)) <= trace.LOGGED + 10


def test_secrets_and_control_characters_stay_out_of_tracebacks() -> None:
    error = caught(charge, "{")
    error.add_note("password s3cret \x1b[2J\rnew line")
    logged = trace.full(error, HIDE)
    assert "s3cret" not in logged
    assert "********" in logged
    assert "\x1b" not in logged
    assert "\r" not in logged


def installed(folder: Path, name: str, text: str) -> ModuleType:
    path = folder / "site-packages" / name / "__init__.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_program_that_is_installed_keeps_its_own_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    library = "def call(function):\n    return inner(function)\ndef inner(function):\n    return function()\n"
    installed(tmp_path, "mailer", library)
    program = "import mailer\ndef handle(message):\n    mailer.call(send)\ndef send():\n    raise OSError('no route')\n"
    shop = installed(tmp_path, "shop", program)
    message = menzil.Message(1, "mail")
    error = caught(shop.handle, message)
    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next  # as the worker calls it: no test between
    names = [line.split(", in ")[1] for line in frames(error).splitlines() if line.startswith("File")]
    assert names == ["handle", "send"]


def test_a_protocol_that_fails_keeps_frames_but_no_words() -> None:
    def deliver() -> None:
        try:
            raise ValueError("token abc")
        except ValueError:
            raise RuntimeError("token abc") from None

    def outer() -> None:
        try:
            raise KeyError("token abc")
        except KeyError:
            deliver()

    response = outcomes.fault(caught(outer)).response
    assert response is not None
    assert "in deliver" in response["traceback"]
    said = [line for line in response["traceback"].splitlines() if line.startswith("caused by")]
    assert all("token" not in line for line in said)
