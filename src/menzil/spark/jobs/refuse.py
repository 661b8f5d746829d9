"""What the engine would refuse, found in Spark before anything is sent.

The engine keeps the last word: it checks every row again when the send is committed, and then takes all or none. What
is found here is found row by row, with the row, and without a load on the database.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from menzil.spark.jobs.arrow import batch_udf
from menzil.spark.jobs.contain import TooDeepError, read

_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,255}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_ODD = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
_EXPONENT = re.compile(r"\d[eE][+-]?\d\d")
#: The times that menzil._check_options lets pass, in microseconds: a day from both ends, for the zones of the world.
YEARS = (-62_135_510_400_000_000, 253_402_214_400_000_000)
_UUID = r"^\{?[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}\}?$"


def json_problem(text: str, limit: int, what: str = "payload") -> str | None:
    """Why jsonb, or the limit on its size, would refuse this text. Pure."""
    try:
        value = read(text)
    except TooDeepError:
        return f"The {what} is nested too deeply for this way of sending."
    except ValueError as error:
        reason = str(error).partition(":")[0]
        return f"The {what} is not JSON: {reason[:1].lower()}{reason[1:]}."
    if _ODD.search(text) and _unstorable(value):
        return f"The {what} holds a character that PostgreSQL cannot store."
    # The limit is on what jsonb writes. A blank behind every comma and colon at most doubles a text; 1e1000 is another
    # matter, it has a thousand zeros.
    if (2 * len(text.encode()) > limit or _EXPONENT.search(text)) and (size := _size(value)) > limit:
        return f"The {what} {'have' if what == 'headers' else 'has'} {size} bytes, the limit is {limit}."
    return None


def _unstorable(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value)
    if isinstance(value, dict):
        return any(_unstorable(key) or _unstorable(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_unstorable, value))


def _size(value: Any) -> int:
    """How many bytes jsonb writes for it."""
    match value:
        case dict():
            return 2 + sum(_size(key) + 2 + _size(item) for key, item in value.items()) + 2 * max(len(value) - 1, 0)
        case list():
            return 2 + sum(map(_size, value)) + 2 * max(len(value) - 1, 0)
        case Decimal():
            return _digits(value)
        case _:
            return len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass"))


def _digits(number: Decimal) -> int:
    """How long a number is without an exponent; it is not written to find out, it may be of any length."""
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "JSON has no infinity"
    return sign + (len(digits) + exponent if exponent >= 0 else max(len(digits), 1 - exponent) + 1)


def object_problem(text: str, limit: int, what: str) -> str | None:
    """The same for headers and metadata, which are objects. Pure."""
    problem = json_problem(text, limit, what)
    if problem is not None:
        return problem
    value = read(text)
    if not isinstance(value, dict):
        return f"The {what} must be a JSON object."
    if what == "headers":
        for name, line in value.items():
            if not _HEADER.fullmatch(name):
                return f"{name[:100]!r} is not a header name."
            if not isinstance(line, str) or _CONTROL.search(line) or len(line.encode()) > 8192:
                return f"The value of header {name!r} must be one line of text of at most 8192 bytes."
        if len({name.lower() for name in value}) < len(value):
            return "A header is given twice: header names do not distinguish upper and lower case."
    return None


def problems(frame: DataFrame, limit: int) -> DataFrame:
    """Fill the column `_problem` with the first thing that is wrong with a row. Driver: builds expressions."""
    has = frame.columns
    found: list[Column] = [F.col("_problem")]
    found += [
        F.when(F.col(word).isNull(), F.lit(f"The {word.replace('_', ' ')} is missing."))
        for word in ("endpoint", "event_type")
        if word in has
    ]
    bodies = [F.col(name).isNull() for name in ("payload", "content") if name in has]
    missing = bodies[0] if len(bodies) == 1 else bodies[0] & bodies[1]
    found.append(F.when(missing, F.lit("The payload is missing.")))
    if len(bodies) == 2:
        found.append(F.when(~bodies[0] & ~bodies[1], F.lit("A message has a payload or a content, not both.")))
    if "content" in has:
        size = F.octet_length("content")
        sentence = F.concat(F.lit("The content has "), size, F.lit(f" bytes, the limit is {limit}."))
        found.append(F.when(size > limit, sentence))
    found += _option_problems(has)
    written = [name for name in ("payload", "headers", "metadata") if name in has]
    if written:
        found.append(_json_problems(written, limit)(*[F.col(name) for name in written]))
    return frame.withColumn("_problem", F.coalesce(*found))


def _option_problems(has: list[str]) -> Iterator[Column]:
    if "priority" in has:
        yield F.when(~F.col("priority").between(0, 10), F.lit("The priority must lie between 0 and 10."))
    for word in ("ordering_key", "idempotency_key"):
        if word in has:
            size = F.octet_length(word)
            said = F.lit(f"The {word.replace('_', ' ')} must have 1 to 1024 bytes and no NUL.")
            yield F.when((size < 1) | (size > 1024) | F.contains(F.col(word), F.lit("\x00")), said)
    if "correlation_id" in has:
        yield F.when(~F.col("correlation_id").rlike(_UUID), F.lit("The correlation id is not a UUID."))
    for word in ("scheduled_at", "expires_at"):
        if word in has:
            far = ~F.unix_micros(word).between(*YEARS)
            yield F.when(far, F.lit("A schedule or expiry must lie in the years 1 to 9999."))
    if "expires_at" in has and "scheduled_at" in has:
        early = F.col("expires_at") <= F.col("scheduled_at")
        yield F.when(early, F.lit("The message would expire before it is due."))


def _json_problems(written: Sequence[str], limit: int) -> Any:
    """An Arrow UDF over the JSON columns. Runs in the tasks, batch by batch."""

    def look(*columns: pa.Array) -> pa.Array:
        found = []
        for row in zip(*[column.to_pylist() for column in columns], strict=True):
            problem = None
            for what, text in zip(written, row, strict=True):
                if problem is None and text is not None:
                    problem = json_problem(text, limit) if what == "payload" else object_problem(text, limit, what)
            found.append(problem)
        return pa.array(found, pa.string())

    return batch_udf(look, "string")
