"""Configs of endpoints as plans show them: secrets hidden, differences by key, and the patch that the CLI takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from menzil.console.documents import dumps
from menzil.model.secret_paths import Rule, change_secrets

#: Stands for a secret on a page. It has the form of one, so that the statement that is shown is a statement.
HIDDEN = "whsec_" + "HIDDEN00" * 5


def hidden(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with every secret that a person wrote hidden; marks of stored ones stay."""

    def change(path: tuple[str, ...], shown: str, rule: Rule, value: object) -> object:
        del path, shown, rule
        return HIDDEN if isinstance(value, str) else value

    return change_secrets(config, change)


def changes(old: Any, new: Any, path: str = "") -> list[tuple[str, str, str]]:
    """Keys that differ: name, old, new."""
    return list(_changes(old or {}, new or {}, path))


def _changes(old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for name in [*old, *(name for name in new if name not in old)]:
        before, after = old.get(name), new.get(name)
        if before == after and (name in old) == (name in new):
            continue
        if isinstance(before, Mapping) and isinstance(after, Mapping) and not _is_mark(before):
            yield from _changes(before, after, f"{path}{name}.")
        else:
            yield f"{path}{name}", _said(before, name in old), _said(after, name in new)


def _said(value: Any, there: bool) -> str:
    if not there:
        return "none"
    return "(secret)" if value == HIDDEN or _is_mark(value) else dumps(value)


def patch(old: Any, new: Mapping[str, Any]) -> dict[str, Any]:
    """What `menzil endpoint alter --config` takes to come from one config to the other: null takes a key away."""
    before: Mapping[str, Any] = old or {}
    found: dict[str, Any] = {name: None for name in before if name not in new}
    for name, value in new.items():
        was = before.get(name)
        if isinstance(value, Mapping) and isinstance(was, Mapping) and not _is_mark(was):
            inner = patch(was, value)
            if inner:
                found[name] = inner
        elif name not in before or was != value:
            found[name] = value
    return found


def _is_mark(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() <= {"$secret", "$encrypted"} and bool(value)
