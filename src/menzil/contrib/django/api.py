"""The task API: django.tasks of Django 6, or the backport django_tasks on Django 5.2. The rest of the app asks here."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from menzil.contrib.django.conf import TASKS


def _root() -> str:
    for name in TASKS:
        if find_spec(name) is not None:
            return name
    raise ImproperlyConfigured("This Django has no tasks: pip install django-tasks, or upgrade to Django 6.")


#: The package that was found.
ROOT = _root()
_api: Any = import_module(ROOT)
_base: Any = import_module(f"{ROOT}.base")
_exceptions: Any = import_module(f"{ROOT}.exceptions")
_signals: Any = import_module(f"{ROOT}.signals")

task_backends = _api.task_backends
BaseTaskBackend: Any = import_module(f"{ROOT}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
#: Its name differs.
InvalidTask: Any = getattr(_exceptions, "InvalidTask", None) or _exceptions.InvalidTaskError
task_enqueued: Any = _signals.task_enqueued
task_started: Any = _signals.task_started
task_finished: Any = _signals.task_finished
