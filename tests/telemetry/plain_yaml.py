"""Reads the YAML that alerts.yml is written in: mappings, lists of mappings, texts. Refuses everything else."""

from __future__ import annotations

import json
import re
from typing import Any

Line = tuple[int, str]


def read(text: str) -> Any:
    """The document."""
    lines: list[Line] = []
    for line in text.splitlines():
        assert "\t" not in line
        if line.strip() and not line.strip().startswith("#"):
            lines.append((len(line) - len(line.lstrip(" ")), line.strip()))
    value, rest = _block(lines, 0)
    assert rest == [], rest
    return value


def _block(lines: list[Line], indent: int) -> tuple[Any, list[Line]]:
    return _list(lines, indent) if lines[0][1].startswith("- ") else _mapping(lines, indent)


def _list(lines: list[Line], indent: int) -> tuple[list[Any], list[Line]]:
    found = []
    while lines and lines[0][0] == indent and lines[0][1].startswith("- "):
        inner = [(indent + 2, lines[0][1][2:]), *lines[1:]]
        value, lines = _mapping(inner, indent + 2)
        found.append(value)
    return found, lines


def _mapping(lines: list[Line], indent: int) -> tuple[dict[str, Any], list[Line]]:
    found: dict[str, Any] = {}
    while lines and lines[0][0] == indent and not lines[0][1].startswith("- "):
        match = re.fullmatch(r"([A-Za-z_]\w*):(?: (.+))?", lines[0][1])
        assert match, lines[0]
        key, value = match.groups()
        assert key not in found, key
        lines = lines[1:]
        if value is not None:
            found[key] = _scalar(value)
        else:
            assert lines[0][0] > indent
            found[key], lines = _block(lines, lines[0][0])
    return found, lines


def _scalar(text: str) -> str:
    if text.startswith('"'):
        value: str = json.loads(text)
        return value
    assert text[0] not in "'|>&*!%@`[{", text
    assert ": " not in text, text
    assert " #" not in text, text
    return text
