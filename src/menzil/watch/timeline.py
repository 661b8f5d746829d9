"""What happened to one message, from its row and its tries: for people whose role may read both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

Record = Mapping[str, Any]


class Step(NamedTuple):
    """One thing that happened, or that is to come; `below` is what the handler left behind when it failed."""

    at: datetime | None
    what: str
    words: tuple[Any, ...] = ()
    below: str | None = None


def steps(message: Record, attempts: Sequence[Record]) -> list[Step]:
    """Sent, each attempt, and where it stands now."""
    told = [Step(message["created_at"], "sent", _origin(message))]
    if message["scheduled_at"] is not None:
        told.append(Step(message["scheduled_at"], "scheduled"))
    told += [attempt_step(attempt) for attempt in attempts]
    status, ended_at = message["status"], message["ended_at"]
    if status == "processing":
        by = (f"by {message['worker']}",) if message["worker"] else ()
        words = (" ".join([f"attempt {message['num_attempts']}", *by]), ("leased until", message["unlock_at"]))
        told.append(Step(message["leased_at"], "processing", words))
    elif ended_at is not None:
        told.append(Step(ended_at, status, (("after", ended_at - message["created_at"]),)))
    elif message["next_retry_at"] is not None:
        told.append(Step(message["next_retry_at"], "pending", ("next attempt",)))
    else:
        told.append(Step(None, "pending", ("waits for its turn",)))
    return told


def _origin(message: Record) -> tuple[str, ...]:
    if message["redrive_of"] is not None:
        return (f"redriven from {message['redrive_of']}",)
    return (f"replay of {message['replay_of']}",) if message["replay_of"] is not None else ()


def attempt_step(attempt: Record) -> Step:
    """One attempt: when, which, how it ended, how long it took, why, and where the handler failed."""
    response = attempt.get("response")  # attempts that come from a lake have none
    frames = response.get("traceback") if isinstance(response, dict) else None
    words = [f"attempt {attempt['attempt']}"]
    words += [f"{attempt['duration_ms']:.0f} ms"] if attempt["duration_ms"] is not None else []
    words += [f"by {attempt['worker']}"] if attempt["worker"] else []
    words += [attempt["error"]] if attempt["error"] else []
    words += [f"HTTP {attempt['status_code']}"] if attempt["status_code"] and not attempt["error"] else []
    words += _written(response) if isinstance(response, dict) and not attempt["error"] else []
    below = frames if isinstance(frames, str) else None
    return Step(attempt["leased_at"], attempt["outcome"], tuple(words), below)


def _written(response: Record) -> list[str]:
    """What a broker acknowledged: where the message is now."""
    if response.get("topic") and "qos" in response:
        return [f"{response['topic']} QoS {response['qos']}", *_without_subscribers(response)]
    stream, place = response.get("stream"), response.get("sequence") or response.get("entry")
    if "topic" in response and "offset" in response:
        stream, place = response["topic"], f"{response.get('partition')}:{response['offset']}"
    if not stream or not place:
        return [f"confirmed in {response['confirm_ms']} ms"] if "confirm_ms" in response else []
    return [f"{stream} {place}", *(["was there already"] if response.get("duplicate") else [])]


def _without_subscribers(response: Record) -> list[str]:
    return ["no client subscribes"] if response.get("reason_code") == 0x10 else []
