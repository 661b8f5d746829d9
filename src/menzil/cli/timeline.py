"""The life of one message, a line for each thing that happened to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from menzil.cli.show import COLOURS, cell, duration, paint

Record = Mapping[str, Any]


def lines(message: Record, attempts: Sequence[Record]) -> list[str]:
    """Sent, each attempt, and where it stands now."""
    told = [_line(message["created_at"], "sent", _origin(message))]
    if message["scheduled_at"] is not None:
        told.append(_line(message["scheduled_at"], "scheduled"))
    told += [line for attempt in attempts for line in attempt_lines(attempt)]
    status, ended_at = message["status"], message["ended_at"]
    if status == "processing":
        until = cell(message["unlock_at"])
        by = f" by {cell(message['worker'])}" if message["worker"] else ""
        told.append(
            _line(message["leased_at"], "processing", f"attempt {message['num_attempts']}{by}, leased until {until}")
        )
    elif ended_at is not None:
        told.append(_line(ended_at, status, f"after {duration((ended_at - message['created_at']).total_seconds())}"))
    elif message["next_retry_at"] is not None:
        told.append(_line(message["next_retry_at"], "pending", "next attempt"))
    else:
        told.append(_line(None, "pending", "waits for its turn"))
    return told


def _origin(message: Record) -> str:
    if message["redrive_of"] is not None:
        return f"redriven from {message['redrive_of']}"
    return f"replay of {message['replay_of']}" if message["replay_of"] is not None else ""


def attempt_lines(attempt: Record) -> list[str]:
    """One attempt: when, which, how it ended, how long it took, why, and where the handler failed."""
    response = attempt.get("response")  # attempts that come from a lake have none
    frames = response.get("traceback") if isinstance(response, dict) else None
    below = [f"    {cell(line)}" for line in frames.splitlines()] if isinstance(frames, str) else []
    return [_attempt(attempt), *below]


def _attempt(attempt: Record) -> str:
    words = [f"attempt {attempt['attempt']}"]
    words += [f"{attempt['duration_ms']:.0f} ms"] if attempt["duration_ms"] is not None else []
    words += [f"by {cell(attempt['worker'])}"] if attempt["worker"] else []
    words += [cell(attempt["error"])] if attempt["error"] else []
    words += [f"HTTP {attempt['status_code']}"] if attempt["status_code"] and not attempt["error"] else []
    return _line(attempt["leased_at"], attempt["outcome"], ", ".join(words))


def _line(at: Any, what: str, more: str = "") -> str:
    line = f"{cell(at):20}  {paint(what, COLOURS.get(what))}"
    return line + " " * (12 - len(what)) + more if more else line
