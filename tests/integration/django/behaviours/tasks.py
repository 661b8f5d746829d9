"""Tasks that do one thing each."""

from __future__ import annotations

from typing import Any

from menzil.contrib.django import api

task: Any = api._api.task


@task
def add(a: int, b: int = 0) -> int:
    return a + b


@task
def refuse(word: str) -> None:
    raise LookupError(f"no {word}")


@task(max_retries=0)
def refuse_once() -> None:
    raise LookupError("no second time")


@task(takes_context=True)
def second_try(context: Any) -> dict[str, Any]:
    if context.attempt == 1:
        raise ConnectionError("not yet")
    return {"attempt": context.attempt, "errors": len(context.task_result.errors)}


@task
async def add_later(a: int, b: int) -> int:
    return a + b


@task
def tell(what: str) -> Any:
    values: dict[str, Any] = {
        "secret": {"token": "s3cret"},
        "mark": ["[redacted]"],
        "nul": "a\0b",
        "object": object(),
        "nan": float("nan"),
        "nothing": None,
    }
    return values[what]
