"""The life of one message, a line for each thing that happened to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from menzil.cli.show import COLOURS, cell, duration, paint
from menzil.watch.timeline import Step, attempt_step, steps

Record = Mapping[str, Any]

#: The colour of what happened, by the first word of its name in message_life().
_LIFE_COLOURS = {"try_failed": "red", "dead_letter": "red", "completed": "green", "try_completed": "green"}


def lines(message: Record, attempts: Sequence[Record]) -> list[str]:
    """Sent, each attempt, and where it stands now."""
    return [line for step in steps(message, attempts) for line in _lines(step)]


def attempt_lines(attempt: Record) -> list[str]:
    """One attempt: when, which, how it ended, how long it took, why, and where the handler failed."""
    return _lines(attempt_step(attempt))


def life_lines(life: Sequence[Record], message_id: int) -> list[str]:
    """The rows of message_life(): those of relatives are named by their ids."""
    width = max((len(row["what"]) for row in life), default=0)
    return [_life_line(row, message_id, width) for row in life]


def _life_line(row: Record, message_id: int, width: int) -> str:
    what = cell(row["what"])
    colour = _LIFE_COLOURS.get(what) or COLOURS.get(what)
    of = "" if row["message_id"] in (None, message_id) else f"[{row['message_id']}] "
    took = f" ({row['duration_ms']:,.0f} ms)" if row["duration_ms"] is not None else ""
    shown = paint(what.replace("_", " ").replace(".", " "), colour) + " " * (width - len(what))
    return f"{cell(row['at']):20}  {shown}  {of}{cell(row['sentence'])}{took}"


def _lines(step: Step) -> list[str]:
    words = ", ".join(_word(word) for word in step.words)
    line = f"{cell(step.at):20}  {paint(step.what, COLOURS.get(step.what))}"
    below = [f"    {cell(frame)}" for frame in step.below.splitlines()] if step.below else []
    return [line + " " * (12 - len(step.what)) + words if words else line, *below]


def _word(word: Any) -> str:
    if isinstance(word, tuple):
        said, value = word
        return f"{said} {duration(value.total_seconds()) if isinstance(value, timedelta) else cell(value)}"
    return cell(word)
