"""Random calls: mostly good values with a few bad ones among them, sometimes nothing but bad ones."""

from __future__ import annotations

from random import Random

from tests.fuzz.catalog import Function
from tests.fuzz.json_values import json_value
from tests.fuzz.plain_values import MEANT, MEANT_BY, NAMES, PLAIN, quoted

#: What a call that means no harm would pass, where the type alone does not say so.
GOOD: dict[str, list[str]] = {
    "text": [*map(quoted, NAMES), "'k'", "'fresh'"],
    "integer": ["0", "1", "3", "10", "100"],
    "bigint": ["0", "1", "2", "5", "60000"],
    "timestamp with time zone": ["now()", "now() + interval '1 hour'", "now() - interval '1 hour'", "'2030-01-01'"],
    "interval": ["'1 second'", "'1 hour'", "'1 day'"],
    "bytea": ["'x'"],
    "double precision": ["1", "1000"],
    "numeric": ["0", "1"],
}
IDS = [str(number) for number in range(1, 30)]
ATTEMPTS = ["1", "1", "1", "2"]


def call(random: Random, function: Function) -> str:
    """Return the call as it is typed: parameters by name, those with a default perhaps left out."""
    badness = random.choice([0.0, 0.1, 0.1, 0.3, 0.3, 1.0])
    length = random.choice([0, 1, 1, 2, 3])
    given = []
    for place, (name, kind) in enumerate(function.parameters):
        if place >= function.needed and random.random() < 0.5:
            continue
        known = MEANT_BY.get((function.name, name))
        if known and random.random() < 0.7:
            given.append(f"{name} => {random.choice(known)}")
        else:
            given.append(f"{name} => {_argument(random, name, kind, length, badness)}")
    return f"menzil.{function.name}({', '.join(given)})"


def _argument(random: Random, name: str, kind: str, length: int, badness: float) -> str:
    bad = random.random() < badness
    if bad and random.random() < 0.15:
        return f"null::{kind}"
    if not kind.endswith("[]"):
        return f"({_one(random, name, kind, bad)})::{kind}"
    inner = kind.removesuffix("[]")
    if bad and random.random() < 0.5:
        return _odd_array(random, name, inner)
    return _array([_one(random, name, inner, bad) for _ in range(length)], inner)


def _one(random: Random, name: str, kind: str, bad: bool) -> str:
    if bad and random.random() < 0.05:
        return "null"
    if kind == "jsonb":
        return json_value(random, name, bad)
    meant = MEANT.get(name) or MEANT.get(name.removesuffix("s"))
    if kind.startswith("timestamp") and name in ("p_from", "p_until"):  # elsewhere these are transaction ids
        meant = None
    if meant and random.random() < 0.7:
        return random.choice(meant)
    if bad:
        return random.choice(PLAIN[kind])
    if kind == "bigint" and name.endswith(("_id", "_ids")):
        return random.choice(IDS)
    if name == "p_num_attempts":
        return random.choice(ATTEMPTS)
    return random.choice(GOOD.get(kind) or PLAIN[kind])


def _array(elements: list[str], kind: str) -> str:
    return f"array[{', '.join(elements)}]::{kind}[]"


def _odd_array(random: Random, name: str, kind: str) -> str:
    some = [_one(random, name, kind, random.random() < 0.3) for _ in range(random.choice([1, 2, 2, 3]))]
    shape = random.randrange(6)
    if shape == 0:
        return f"'{{}}'::{kind}[]"
    if shape == 1:  # the first element is not number 1
        low = random.choice([-5, 0, 2])
        return f"('[{low}:{low + len(some) - 1}]=' || {_array(some, kind)}::text)::{kind}[]"
    if shape == 2:
        return f"array[{_array(some, kind)}, {_array(some, kind)}]"
    if shape == 3:
        return _array([*some, "null"], kind)
    if shape == 4:
        count = random.choice([10000, 10001, 20000])
        return f"array_fill(({_one(random, name, kind, bad=False)})::{kind}, array[{count}])"
    return f"array[{_array(some, kind)}]"  # one row of two dimensions
