"""Events in the tasks of a fan-out: who gets them, and whether they obey the schema of their type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pyarrow as pa

from menzil.model.errors import InvalidValueError
from menzil.ops import looking_pipeline
from menzil.ops.run import run
from menzil.spark.database import asking, for_driver
from menzil.spark.jobs.arrow import batch_udf, pair_udf
from menzil.spark.jobs.contain import read
from menzil.spark.jobs.match import Subscription, matcher

#: Payloads of one question to the database, when their type has a schema.
CHUNK = 500


def receivers(subscriptions: tuple[Subscription, ...]) -> Any:
    """An Arrow UDF (event type, payload) -> the endpoints that get a copy, each once. Runs in the tasks."""

    def match(types: pa.Array, payloads: pa.Array) -> pa.Array:
        known = matcher(subscriptions)
        pairs = zip(types.to_pylist(), payloads.to_pylist(), strict=True)
        return pa.array([known.endpoints(kind, read(text)) for kind, text in pairs], pa.list_(pa.string()))

    return batch_udf(match, "array<string>")


def schema_problems(dsn: str, with_schema: frozenset[str]) -> Any:
    """An Arrow UDF (event type, payload) -> the rule of the schema that is broken, or NULL.

    Runs in the tasks, which ask the database: one implementation of the rules, and it is the engine's.
    """
    found = str(for_driver(dsn))  # tasks have another environment

    def look(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        with asking(found, "menzil pipeline") as conn:
            for types, payloads in batches:
                told: list[str | None] = [None] * len(types)
                places: dict[str, list[int]] = {}
                bodies = payloads.to_pylist()
                for place, kind in enumerate(types.to_pylist()):
                    if kind in with_schema and bodies[place] is not None:
                        places.setdefault(kind, []).append(place)
                for kind, those in places.items():
                    for start in range(0, len(those), CHUNK):
                        chunk = those[start : start + CHUNK]
                        for place, problem in broken(_asking(conn, kind), [bodies[n] for n in chunk], chunk):
                            told[place] = problem
                yield pa.array(told, pa.string())

    return pair_udf(look, "string")


def _asking(conn: psycopg.Connection[Any], kind: str) -> Callable[[list[str]], str | None]:
    def ask(payloads: list[str]) -> str | None:
        try:
            run(conn, looking_pipeline.validate_events(kind, payloads))
        except InvalidValueError as refused:
            return refused.message
        return None

    return ask


def broken(ask: Callable[[list[str]], str | None], payloads: list[str], places: list[int]) -> Iterator[tuple[int, str]]:
    """The payloads that are refused, found by halving: the good ones, which are most, cost one question together."""
    problem = ask(payloads)
    if problem is None:
        return
    if len(payloads) == 1:
        yield places[0], problem
        return
    middle = len(payloads) // 2
    yield from broken(ask, payloads[:middle], places[:middle])
    yield from broken(ask, payloads[middle:], places[middle:])
