"""The worker of a Django project. Write handlers for it in the tasks.py of an app; `manage.py menzil worker` runs it.

from menzil.contrib.django.worker import app

@app.handler("orders", transaction="django")
def book(message): ...
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from menzil.contrib.django import conf
from menzil.model.errors import UsageError
from menzil.model.message import Message
from menzil.model.outcome import Outcome
from menzil.worker import Worker
from menzil.worker.options import new_name

#: With a name from the start: results of tasks say which worker ran them.
app = Worker(name=new_name())

_served: set[str] = set()  # aliases of backends


def prepare(alias: str) -> None:
    """Import the tasks.py of every app, and let the worker run the tasks of the backends on this database."""
    for config in apps.get_app_configs():
        if config.name != "menzil.contrib.django" and module_has_submodule(config.module, "tasks"):
            import_module(f"{config.name}.tasks")
    for backend in conf.backends():
        if backend.database == alias:
            backend.make_channels()
            if backend.alias not in _served:
                _serve(backend)


def _serve(backend: Any) -> None:
    # The module of the task API is imported here: a project without tasks may have handlers.
    from menzil.contrib.django.performing import perform

    if not backend.queues:
        raise UsageError(f"TASKS[{backend.alias!r}] has no QUEUES.", hint='write "QUEUES": ["default"]')

    def run_task(message: Message) -> Outcome:
        return perform(backend, message, app.name or "")

    run_task.__qualname__ = f"tasks_{backend.alias}"
    queues = sorted(backend.queues)
    app.handler(*queues, concurrency=backend.options["concurrency"], lease=backend.options["lease"])(run_task)
    _served.add(backend.alias)
