"""docs/reference/telemetry.md, made from the code: python -m tests.telemetry.reference writes it."""

from __future__ import annotations

from pathlib import Path

from menzil.telemetry.metric_names import QUEUE, WORKER, Family
from menzil.telemetry.names import ATTRIBUTES, BOUNDS, MEASURES, SPANS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "telemetry.md"

HEAD = """# Metrics, spans and log lines

Made from `src/menzil/telemetry`; a test compares this page with the code. How to use them: [monitor with
Prometheus](../how-to/monitor-with-prometheus.md), [trace through the queue](../how-to/trace-through-the-queue.md).
"""

METRICS = """
## Metrics

Of a database, by `menzil metrics --prometheus`, `menzil metrics --serve` and `/metrics` of the console. A histogram
has `_bucket` with the label `le`, and no `_sum`: the pulse does not add durations up. `status_class` is `1xx` to
`5xx` for tries that failed with an HTTP status, and empty otherwise. `result` is completed, failed, deferred or
recovered (the lease ran out).

A scrape reads a bounded part of a deep queue. Where it reads less than all, `menzil_messages_waiting_is_lower_bound`
of a channel is 1: its `menzil_messages_waiting` and `menzil_oldest_waiting_seconds` are lower bounds. An alert about
less than a number asks `menzil_messages_waiting < 100 unless menzil_messages_waiting_is_lower_bound == 1`; one about
more than a number needs no such word. `menzil_queue_depth` is the whole queue at any depth, from registers.
"""

OF_WORKERS = """
Of a worker, by `menzil worker --metrics-port`, besides `process_…` and `python_…` of the official client. `result`
is completed, failed, deferred, handed_back or lost. The histograms have sums.
"""

SPANS_HEAD = """
## Spans

With an OpenTelemetry SDK installed by the program. Names follow the semantic conventions 1.44.0 for messaging,
which are in development: they may change with a minor version of menzil. Where a call is about several channels,
the span has no second word.
"""

ATTRIBUTES_HEAD = """
| attribute | says |
|---|---|
"""

MEASURES_HEAD = f"""
With a meter provider of the SDK, these are measured too. They have the attributes of the span that stay the same
from call to call. Bounds of the histograms, in seconds: {", ".join(f"{bound:g}" for bound in BOUNDS)}.

| measurement | instrument | unit | says |
|---|---|---|---|
"""

LOGS = """
## Log lines

`menzil worker`, `menzil console` and `menzil metrics --serve` write to standard error: as text, or with
`--log-format json` one object a line. Which events a worker has is in [the worker](worker.md#command).

| field | says |
|---|---|
| `time` | UTC, in ISO 8601 |
| `level`, `logger` | `WARNING`, `menzil.worker` |
| `event` | what happened; lines of other loggers have `message` instead |
| `channel`, `id`, `attempt` | the message that the event is about |
| `trace_id` | the trace of its delivery, or else the one its sender put into `metadata.traceparent` |
| `traceback` | of an exception |
| all others | facts of the event, as in the text |

Passwords of the DSN and secrets of endpoints never appear. What the setting `redact` names is replaced by
`[redacted]` in log lines, in the errors and in the answers that a worker stores. Payloads are not logged; an
exception of your handler is, with its text, and so is what that text repeats.
"""


def _metrics(families: tuple[Family, ...]) -> str:
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(one.labels) or ' '} | {one.source} | {one.text.rstrip('.')} |"
        for one in families
    ]
    return "\n| metric | type | labels | from | says |\n|---|---|---|---|---|\n" + "\n".join(rows) + "\n"


def page() -> str:
    """The whole page."""
    spans = [f"| `{one.name}` | {one.kind} | {one.type or ' '} | {one.when} | {one.related} |" for one in SPANS]
    return "".join(
        (
            HEAD,
            METRICS,
            _metrics(QUEUE),
            OF_WORKERS,
            _metrics(WORKER),
            SPANS_HEAD,
            "\n| span | kind | operation type | when | links, parent |\n|---|---|---|---|---|\n",
            "\n".join(spans) + "\n",
            ATTRIBUTES_HEAD,
            "".join(f"| `{name}` | {text} |\n" for name, text in ATTRIBUTES.items()),
            MEASURES_HEAD,
            "".join(f"| `{name}` | {kind} | {unit} | {text} |\n" for name, (kind, unit, text) in MEASURES.items()),
            LOGS,
        )
    )


if __name__ == "__main__":
    PAGE.write_text(page())
