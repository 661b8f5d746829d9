"""The backend for django.tasks: a task that is enqueued is a row of the caller's transaction.

    TASKS = {"default": {"BACKEND": "menzil.contrib.django.tasks.MenzilBackend", "QUEUES": ["default", "mail"]}}

A queue is a channel of the same name. `manage.py menzil worker` runs the tasks.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

from django.db import connections, transaction
from django.utils import timezone

from menzil.contrib.django import conf, options, results
from menzil.contrib.django.api import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResultDoesNotExist,
    task_enqueued,
)
from menzil.contrib.django.queue import run_in
from menzil.ops import channels, looking_tasks, sending


@dataclass(frozen=True, slots=True, kw_only=True)
class MenzilTask(Task):  # type: ignore[misc, unused-ignore]
    """A task with two more words: @task(ordering_key="customer", max_retries=3). Django 6.0 does not pass them on."""

    #: The name of a parameter: tasks with equal values of it run one after the other, in the order of their enqueues.
    ordering_key: str | None = None
    #: How often it is tried again after an exception; None is what the backend says.
    max_retries: int | None = None


class MenzilBackend(BaseTaskBackend):
    """Keeps tasks in menzil."""

    task_class = MenzilTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True
    is_menzil = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.options: dict[str, Any] = {**options.DEFAULTS, **params.get("OPTIONS", {})}
        self._known: set[tuple[str, str]] = set()  # database and channel that are there

    @property
    def database(self) -> str:
        """The alias of its database."""
        return str(self.options["database"] or conf.database())

    def validate_task(self, task: Any) -> None:
        """Refuse a task that could not run, when it is defined."""
        super().validate_task(task)
        key, retries = getattr(task, "ordering_key", None), getattr(task, "max_retries", None)
        if key is not None and key not in inspect.signature(task.func).parameters:
            raise InvalidTask(f"ordering_key names a parameter of the task, and {task.name}() has no {key!r}.")
        if retries is not None and (type(retries) is not int or retries < 0):
            raise InvalidTask(f"max_retries must be a whole number, 0 or more, not {retries!r}.")

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Send the task in the caller's transaction."""
        self.validate_task(task)
        result = results.blank(self, task, args, kwargs)  # refuses what JSON cannot hold
        body = {
            "task": task.module_path,
            "args": result.args,
            "kwargs": result.kwargs,
            "backend": self.alias,
            "priority": task.priority,
        }
        self._make_channel(task.queue_name)
        op = sending.send(
            task.queue_name,
            body,
            priority=mapped(task.priority),
            scheduled_at=results.aware(task.run_after),
            ordering_key=_ordering_key(task, args, kwargs),
        )
        object.__setattr__(result, "id", str(run_in(self.database, op)))
        object.__setattr__(result, "enqueued_at", timezone.now())
        task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Read where a task stands."""
        missing = TaskResultDoesNotExist(f"There is no task with the id {result_id}.")
        try:
            number = int(result_id)
        except (TypeError, ValueError):
            raise missing from None
        if not 0 < number < 2**63:
            raise missing
        row = run_in(self.database, looking_tasks.task(number))
        if row is None or not results.is_task(row["payload"]):
            raise missing
        return results.of_row(self, row, run_in(self.database, looking_tasks.tries(number)))

    def check(self, **kwargs: Any) -> list[Any]:
        """Look for mistakes in TASKS."""
        return [*super().check(**kwargs), *options.check(self)]

    def make_channels(self) -> None:
        """Make the channels of its queues, where OPTIONS allow that."""
        for name in sorted(self.queues):
            self._make_channel(name)

    def retries(self, task: Any) -> int:
        """How often this task is tried again."""
        own = getattr(task, "max_retries", None)
        return int(self.options["max_retries"] if own is None else own)

    def _make_channel(self, name: str) -> None:
        alias = self.database
        place = (connections[alias].settings_dict["NAME"], name)
        if not self.options["create_channels"] or place in self._known:
            return
        if not run_in(alias, looking_tasks.has_channel(name)):
            run_in(alias, channels.channel_set(name))
        # A channel that this transaction made goes with it when it is rolled back.
        transaction.on_commit(lambda: self._known.add(place), using=alias)


def mapped(priority: int) -> int:
    """Return menzil's priority for Django's.

    Both 0 and everything below are 0. Priorities of menzil are compared over all channels: if 0 of Django were in the
    middle, every task would overtake every plain message.
    """
    return 0 if priority <= 0 else -(-int(priority) // 10)


def _ordering_key(task: Any, args: Any, kwargs: Any) -> str | None:
    name = getattr(task, "ordering_key", None)
    if name is None:
        return None
    bound = inspect.signature(task.func).bind(*([None] if task.takes_context else []), *args, **kwargs)
    bound.apply_defaults()
    value = bound.arguments[name]
    return None if value is None else str(value)
