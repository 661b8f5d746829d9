"""The official suite of draft 2020-12: every schema that is accepted is enforced as the suite says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue
from tests.sql.suite import Case, cases, home


def _refusal(queue: Queue, case: Case) -> str | None:
    try:
        queue.call("create_event_type", "suite", None, Jsonb(case.schema))
    except psycopg.errors.InvalidParameterValue as error:
        return error.diag.message_primary
    except psycopg.errors.UntranslatableCharacter:
        return "jsonb holds no NUL"
    return None


def _fits(queue: Queue, value: Any) -> bool | str:
    try:
        return bool(queue.call("validate_event", "suite", Jsonb(value)))
    except psycopg.errors.InvalidParameterValue as error:
        said = error.diag.message_primary or ""
        return False if "breaks the rule" in said else said
    except psycopg.errors.UntranslatableCharacter:
        return "jsonb holds no NUL"


# Why a schema of the suite is refused when the event type is created. A schema that is refused gets no verdict.
REASONS = (
    "'$dynamicRef'", "'$dynamicAnchor'", "only the whole schema may have an $id", "other documents are not read",
    "only draft 2020-12 is known", "jsonb holds no NUL",
    # In the optional part: an older draft's keyword, escapes that PostgreSQL reads differently, made up keywords.
    "'dependencies'", "an escape that is not known here", "'unknown",
)  # fmt: skip
# The documentation says it: \\s and \\S speak of ASCII. The draft leaves the dialect of patterns open.
ASCII_ONLY = ("ECMA 262 \\s matches whitespace", "ECMA 262 \\S matches everything but whitespace")


def test_no_schema_of_the_official_suite_gets_a_wrong_verdict(queue: Queue, pytestconfig: pytest.Config) -> None:
    wrong, unexplained, refused, right = [], [], Counter[str](), 0
    assert pytestconfig.cache is not None
    for case in cases(home(pytestconfig.cache.mkdir("json-schema-suite"))):
        if (why := _refusal(queue, case)) is not None:
            refused[case.file] += 1
            if not any(reason in why for reason in REASONS):
                unexplained.append((case.file, case.name, why))
            continue
        for test in case.tests:
            verdict = _fits(queue, test["data"])
            if verdict is test["valid"]:
                right += 1
            elif case.name not in ASCII_ONLY:
                wrong.append((case.file, case.name, test["description"], verdict))
    assert (wrong, unexplained) == ([], [])
    assert right >= 1200
    assert sum(refused.values()) <= 85
    print(f"{right} verdicts are right; refused: {dict(refused)}")
