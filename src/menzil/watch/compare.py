"""Two JSON values side by side: differences by JSON path, in the order of the values; equal parts are folded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple

from menzil.model import exact

Change = Literal["equal", "changed", "added", "removed"]

#: Rows of one comparison; what differs beyond that is only counted.
MOST_ROWS = 2_000
#: Items of lists that are aligned with each other; longer lists are compared place by place.
MOST_ALIGNED = 1_000
#: Levels that are looked into; what differs further down differs as a whole.
MOST_LEVELS = 100

_PLAIN = re.compile(r"[^\W\d][\w-]*")


class Row(NamedTuple):
    """One difference, or one equal part. `size` is how many values an equal part folds."""

    path: str
    change: Change
    a: Any
    b: Any
    size: int = 1


def compare(a: Any, b: Any, *, path: str = "$", most: int = MOST_ROWS) -> dict[str, Any]:
    """Return {"equal", "differences", "cut", "rows": [{"path", "change", "a", "b", "size"}]}.

    A row of equal parts has their number as `size`, and the part itself as `a` and `b`.
    """
    rows: list[Row] = []
    differences = 0
    for row in _rows(a, b, path):
        differences += row.change != "equal"
        if len(rows) < most:
            rows.append(row)
    shown = sum(row.change != "equal" for row in rows)
    return {
        "equal": differences == 0,
        "differences": differences,
        "cut": differences > shown,
        "rows": [row._asdict() for row in rows],
    }


def child(path: str, key: str | int) -> str:
    """The path of a member or an item."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN.fullmatch(key) else f"{path}[{exact.dumps(key)}]"


def count(value: Any) -> int:
    """How many values a part has that are not objects or lists, but at least one."""
    found, todo = 0, [value]
    while todo:
        one = todo.pop()
        inner = list(one.values()) if isinstance(one, Mapping) else one if isinstance(one, list | tuple) else None
        if inner:
            todo += inner
        else:
            found += 1
    return found


def _rows(a: Any, b: Any, path: str) -> Iterator[Row]:
    # Without recursion: documents may be nested deeper than Python's stack.
    todo = [iter([(path, a, b)])]
    while todo:
        pair = next(todo[-1], None)
        if pair is None:
            todo.pop()
            continue
        place, one, other = pair
        if one is _MISSING:
            yield Row(place, "added", None, other)
        elif other is _MISSING:
            yield Row(place, "removed", one, None)
        elif same(one, other):
            yield Row(place, "equal", one, other, count(one))
        elif len(todo) <= MOST_LEVELS and isinstance(one, Mapping) and isinstance(other, Mapping):
            todo.append(_members(one, other, place))
        elif len(todo) <= MOST_LEVELS and isinstance(one, list | tuple) and isinstance(other, list | tuple):
            todo.append(_items(one, other, place))
        else:
            yield Row(place, "changed", one, other)


class _Missing:
    pass


_MISSING = _Missing()


def same(a: Any, b: Any) -> bool:
    """Equality as JSON sees it: 1 is not true, and 1.0 is another text than 1 but the same number."""
    todo = [(a, b)]
    while todo:
        one, other = todo.pop()
        if isinstance(one, bool) or isinstance(other, bool):
            if one is not other:
                return False
        elif isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            todo += [(one[key], other[key]) for key in one]
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            todo += zip(one, other, strict=True)
        elif one != other:
            return False
    return True


def _members(a: Mapping[str, Any], b: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    for key in [*a, *(key for key in b if key not in a)]:
        yield child(path, key), a.get(key, _MISSING), b.get(key, _MISSING)


def _items(a: Sequence[Any], b: Sequence[Any], path: str) -> Iterator[tuple[str, Any, Any]]:
    """Align the items of two lists: an item put in front is one difference, not one for each item after it."""
    if max(len(a), len(b)) > MOST_ALIGNED:
        blocks = [(0, len(a), 0, len(b))]
    else:
        left_texts, right_texts = ([exact.dumps(_sorted(one), default=repr) for one in items] for items in (a, b))
        blocks = [one[1:] for one in SequenceMatcher(None, left_texts, right_texts, autojunk=False).get_opcodes()]
    for a_start, a_end, b_start, b_end in blocks:
        for step in range(max(a_end - a_start, b_end - b_start)):
            left, right = a_start + step, b_start + step
            one = a[left] if left < a_end else _MISSING
            other = b[right] if right < b_end else _MISSING
            yield child(path, left if one is not _MISSING else right), one, other


def _sorted(value: Any) -> Any:
    # jsonb orders keys by itself; values from elsewhere may not.
    return dict(sorted(value.items())) if isinstance(value, Mapping) else value
