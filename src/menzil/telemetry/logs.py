"""Log lines for machines: one JSON object a line, with the event, its facts, and the trace it belongs to.

Our own events bring their facts along (`said`). Lines of other loggers have a message, and what a logger was given to
put into it is redacted like everything else. No event holds a payload.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Literal, get_args

LogFormat = Literal["text", "json"]
FORMATS: tuple[str, ...] = get_args(LogFormat)

#: The attribute of a log record with the facts of an event of ours.
FACTS = "menzil"

Redact = Callable[[str], str]


def said(event: str, facts: dict[str, object], traceback: str | None = None) -> dict[str, Any]:
    """What a log record takes along as `extra`, so that a line of JSON has facts and not a text of them."""
    found = {"event": event, **{name: value for name, value in facts.items() if value is not None}}
    return {FACTS: found | ({"traceback": traceback} if traceback else {})}


class TextLines(logging.Formatter):
    """Time in UTC, level, and what happened, as people read it."""

    def __init__(self, redact: Redact | None = None) -> None:
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
        self.converter = time.gmtime
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Write the line; an event of ours has been redacted already."""
        line = super().format(record)
        return line if self._redact is None or hasattr(record, FACTS) else self._redact(line)


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, event and its facts, and trace_id where a trace is known."""

    def __init__(self, redact: Redact | None = None, *, escaped: bool = False) -> None:
        """`escaped`: in ASCII, for a stream that is not in UTF-8."""
        super().__init__()
        self._redact = redact or (lambda text: text)
        self._escaped = escaped

    def format(self, record: logging.LogRecord) -> str:
        """Write the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line: dict[str, Any] = {"time": at, "level": record.levelname, "logger": record.name}
        facts = getattr(record, FACTS, None)
        if isinstance(facts, dict):
            line |= facts
        else:
            line["message"] = self._redact(record.getMessage())
            if record.exc_info:
                line["traceback"] = self._redact(self.formatException(record.exc_info))
        if "trace_id" not in line:
            line |= _current_trace()
        return json.dumps(line, ensure_ascii=self._escaped, default=str)


def log_to_stderr(
    loggers: Iterable[str], how: str = "text", *, level: int = logging.INFO, redact: Redact | None = None
) -> None:
    """Send the lines of these loggers to standard error, and nowhere else."""
    handler = logging.StreamHandler()
    escaped = (getattr(handler.stream, "encoding", None) or "").lower() not in ("utf-8", "utf8")
    handler.setFormatter(JsonLines(redact, escaped=escaped) if how == "json" else TextLines(redact))
    for name in loggers:
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
        logger.setLevel(level)


def _current_trace() -> dict[str, str]:
    """The trace that is current, in a program that traces."""
    api: Any = sys.modules.get("opentelemetry.trace")
    if api is None:
        return {}
    context = api.get_current_span().get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
