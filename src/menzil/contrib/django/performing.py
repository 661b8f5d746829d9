"""Runs one task: from a message to an Outcome, with the signals on the way.

A task runs in a thread of the worker. An async task is awaited there, in an event loop of its own; what it asks the
ORM for runs in the thread, on the connection of the thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from menzil.contrib.django import results
from menzil.contrib.django.api import TaskContext, TaskError, TaskResultStatus, task_finished, task_started
from menzil.contrib.django.queue import run_in
from menzil.model.message import Message
from menzil.model.outcome import Complete, Fail, Outcome
from menzil.ops import looking_tasks
from menzil.worker.trace import plain

#: Bytes of a return value: it is kept with the message, and read with every look at it.
LARGEST = 1024 * 1024


class NotJsonError(TypeError):
    """The task returned a value that JSON, or PostgreSQL, cannot hold."""


def perform(backend: Any, message: Message, worker: str) -> Outcome:
    """Run the task of a message."""
    if not results.is_task(message.payload):
        return Fail(
            f"This message of the queue {message.channel!r} is not a task: it was not sent by enqueue().", retry=False
        )
    try:
        tries = run_in(backend.database, looking_tasks.tries(message.id)) if message.attempt > 1 else []
        result = results.of_message(backend, message, tries, worker)
    except ImportError as error:
        # Nothing has run: a worker of the next release may know the task.
        return Fail(f"The task cannot start: {error}", response=_told(error))
    # A receiver that raises must not end a task, nor run it twice: Django logs what it raised.
    task_started.send_robust(sender=type(backend), task_result=result)
    try:
        given = [TaskContext(task_result=result)] if result.task.takes_context else []
        value = kept(result.task.call(*given, *result.args, **result.kwargs))
    except BaseException as error:
        return _failed(backend, message, result, error)
    results.change(result, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now(), _return_value=value)
    task_finished.send_robust(sender=type(backend), task_result=result)
    return Complete() if value is None else Complete(response=results.answer(value))


def kept(value: Any) -> Any:
    """Return the value as it will be read, or refuse one that would be read as another."""
    try:
        text = json.dumps(_normal(value), allow_nan=False, ensure_ascii=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise NotJsonError(f"The return value cannot be kept as JSON: {error}") from error
    if "\\u0000" in text.replace("\\\\", ""):
        raise NotJsonError("The return value holds a NUL character, which PostgreSQL cannot keep.")
    if size > LARGEST:
        raise NotJsonError(f"The return value has {size} bytes of JSON, more than {LARGEST}.")
    return json.loads(text)


def _normal(value: Any) -> Any:
    """What Django's normalize_json does: mappings and sequences become dicts and lists, bytes become text."""
    if isinstance(value, Mapping):
        return {_normal(key): _normal(one) for key, one in value.items()}
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_normal(one) for one in value]
    return value


def _failed(backend: Any, message: Message, result: Any, error: BaseException) -> Fail:
    response = _told(error)
    last = isinstance(error, NotJsonError) or message.retry_count >= _allowed(backend, result.task)
    now = timezone.now()
    result.errors.append(
        TaskError(exception_class_path=response["exception_class_path"], traceback=response["traceback"])
    )
    if last:
        results.change(result, status=TaskResultStatus.FAILED, finished_at=now)
        # Inside the except block: receivers such as Django's logger read the exception that is being handled.
        task_finished.send_robust(sender=type(backend), task_result=result)
    else:
        results.change(result, status=TaskResultStatus.READY)
    return Fail(f"{response['exception_class_path']}: {_text(error)}", retry=not last, response=response)


def _allowed(backend: Any, task: Any) -> int:
    """How often it is tried again; the queue has the last word, and with it the task ends."""
    wanted: int = backend.retries(task)
    if not wanted:
        return 0
    most: int = run_in(backend.database, looking_tasks.most_retries())
    return min(wanted, most)


def _told(error: BaseException) -> dict[str, Any]:
    kind = type(error)
    return {"exception_class_path": f"{kind.__module__}.{kind.__qualname__}", "traceback": plain(error)}


def _text(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except Exception:  # a __str__ that is broken must not keep the task from failing
        return "(its text cannot be read)"
