"""TaskResults: a new one, one of a message that is being run, and one of a row of the queue or the archive."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import timezone
from django.utils.module_loading import import_string

from menzil.contrib.django.api import InvalidTask, Task, TaskError, TaskResult, TaskResultStatus
from menzil.model.message import Message
from menzil.model.redact import MARK
from menzil.ops.records import Record

_STATUS = {
    "pending": TaskResultStatus.READY,
    "processing": TaskResultStatus.RUNNING,
    "completed": TaskResultStatus.SUCCESSFUL,
}


class TaskNotRunError(Exception):
    """The task ended without an exception of its own: it expired, was cancelled, or its workers were lost."""


class Redacted:
    """Stands for a return value that the setting `redact` changed before it was stored. It equals nothing."""

    def __repr__(self) -> str:
        return "<return value that menzil's setting 'redact' has changed>"


REDACTED = Redacted()


def is_task(payload: Any) -> bool:
    """Whether a payload is that of a task."""
    if not isinstance(payload, dict) or not isinstance(payload.get("task"), str):
        return False
    return isinstance(payload.get("args"), list) and isinstance(payload.get("kwargs"), dict)


def task_of(backend: Any, payload: Any, queue: str, run_after: datetime | None) -> Any:
    """Return the task that a payload names, with what it was enqueued with."""
    path = payload["task"]
    try:
        found = import_string(path)
    except ImportError as error:
        raise ImportError(f"There is no task {path}: {error}") from error
    if not isinstance(found, Task):
        raise ImportError(f"{path} is not a task: the decorator @task is missing there.")
    try:
        return found.using(
            priority=payload.get("priority"), queue_name=queue, run_after=run_after, backend=backend.alias
        )
    except InvalidTask:  # settings have changed since: the queue is gone from QUEUES
        return found


def blank(backend: Any, task: Any, args: Any, kwargs: Any) -> Any:
    """Return the result of a task that no worker has run."""
    return TaskResult(
        task=task,
        id="",
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=args,
        kwargs=kwargs,
        backend=backend.alias,
        errors=[],
        worker_ids=[],
    )


def of_message(backend: Any, message: Message, tries: list[Record], worker: str) -> Any:
    """Return the result of a message that a worker begins to run."""
    task = task_of(backend, message.payload, message.channel, shown(message.scheduled_at))
    result = blank(backend, task, message.payload["args"], message.payload["kwargs"])
    now = timezone.now()
    begun = [one["leased_at"] for one in tries if one["leased_at"]]
    change(
        result,
        id=str(message.id),
        status=TaskResultStatus.RUNNING,
        enqueued_at=shown(message.created_at),
        started_at=shown(min(begun)) if begun else now,
        last_attempted_at=now,
        errors=_errors(tries),
        worker_ids=[*_workers(tries), worker],
    )
    return result


def of_row(backend: Any, row: Record, tries: list[Record]) -> Any:
    """Return the result of a message as the database has it."""
    payload = row["payload"]
    task = task_of(backend, payload, row["channel"], shown(row["scheduled_at"]))
    result = blank(backend, task, payload["args"], payload["kwargs"])
    status = _STATUS.get(row["status"], TaskResultStatus.FAILED)
    begun = [one["leased_at"] for one in (*tries, row) if one["leased_at"]]
    errors, workers = _errors(tries), _workers(tries)
    if status == TaskResultStatus.RUNNING and row["worker"]:
        workers.append(row["worker"])
    if status == TaskResultStatus.FAILED and not errors:
        errors.append(_not_run(row["last_error"] or f"The task was {row['status']}."))
    change(
        result,
        id=str(row["id"]),
        status=status,
        enqueued_at=shown(row["created_at"]),
        started_at=shown(min(begun)) if begun else None,
        last_attempted_at=shown(max(begun)) if begun else None,
        finished_at=shown(row["ended_at"]),
        errors=errors,
        worker_ids=workers,
        _return_value=_returned(row["response"]) if status == TaskResultStatus.SUCCESSFUL else None,
    )
    return result


def change(result: Any, **values: Any) -> None:
    """Set fields of a result, which is frozen for its readers."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def answer(value: Any) -> dict[str, Any]:
    """Return the response that keeps a return value; `marked` tells a mark of the task from one of the redaction."""
    return {"return_value": value, **({"marked": True} if _marked(value) else {})}


def _returned(response: Any) -> Any:
    if not isinstance(response, dict):
        return None
    value = response.get("return_value")
    return REDACTED if _marked(value) and not response.get("marked") else value


def _marked(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_marked(one) for pair in value.items() for one in pair)
    if isinstance(value, list):
        return any(map(_marked, value))
    return isinstance(value, str) and MARK in value


def _errors(tries: list[Record]) -> list[Any]:
    return [_error(one) for one in tries if one["outcome"] not in ("completed", "deferred")]


def _error(one: Record) -> Any:
    response = one["response"] or {}
    path = response.get("exception_class_path")
    if not path:
        return _not_run(one["error"] or f"The try ended as {one['outcome']}.")
    return TaskError(exception_class_path=path, traceback=response.get("traceback") or one["error"] or "")


def _not_run(text: str) -> Any:
    path = f"{TaskNotRunError.__module__}.{TaskNotRunError.__qualname__}"
    return TaskError(exception_class_path=path, traceback=text)


def _workers(tries: list[Record]) -> list[str]:
    return [one["worker"] or "" for one in tries]


def shown(at: datetime | None) -> datetime | None:
    """Return a time of the database as this project has its times."""
    return at if at is None or settings.USE_TZ else timezone.make_naive(at)


def aware(at: datetime | None) -> datetime | None:
    """Return a time of this project as the database takes it."""
    return at if at is None or timezone.is_aware(at) else timezone.make_aware(at)
