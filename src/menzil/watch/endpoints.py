"""Endpoints as they fare: health, the circuit over time above its tries, config without secrets, and actual waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from menzil.model.errors import UnknownNameError
from menzil.ops import endpoints as health
from menzil.ops import history, looking, looking_tries
from menzil.watch.destination import destination
from menzil.watch.finding import Run

#: Limits of an endpoint: its channel keeps them.
LIMITS = ("max_concurrency", "max_size", "release_interval_ms", "release_count", "on_dead")

#: Waits that the table of a retry policy shows.
MOST_WAITS = 30

#: What an event says about the circuit from then on.
RESET = "circuit.reset"
CIRCUIT = {"circuit.opened": "open", "circuit.half_open": "half_open", "circuit.closed": "closed", RESET: "closed"}
#: And what it was until then, where no event says it.
_UNTIL = {"circuit.opened": "closed", "circuit.half_open": "open", "circuit.closed": "half_open", RESET: "open"}
#: Events that are looked through. An endpoint that is down makes two with each probe.
MOST_EVENTS = 2_000
#: How the classes of tries are told apart.
CLASSES = ("2xx", "3xx", "4xx", "5xx", "no answer")


def endpoints(run: Run, *, limit: int = 100, after: str = "") -> dict[str, Any]:
    """Return {"endpoints", "next_after", "as_of"}: each with its health, its address and its dead letters."""
    now = run(looking.now())
    found = run(looking.endpoints(limit + 1, after))
    dead = {row["endpoint_name"]: row["failed_count"] for row in run(history.dlq_summary())}
    # One call for all of them: each call reads what no dequeue has folded yet.
    fares = {row["endpoint_name"]: row for row in run(health.get_endpoint_health())} if found else {}
    shown = [
        {
            **fares[row["name"]],
            "url": destination(row["protocol"], row["config"] or {}),
            "dead": dead.get(row["name"], 0),
        }
        for row in found[:limit]
        if row["name"] in fares  # not made or dropped between the two statements
    ]
    more = len(found) > limit
    return {"endpoints": shown, "next_after": shown[-1]["endpoint_name"] if more else None, "as_of": now}


def described(run: Run, name: str) -> dict[str, Any]:
    """Return the endpoint without its secrets, with {"limits"} that its channel keeps, or refuse an unknown name."""
    found, channel = run(looking.endpoint(name)), run(looking.channel(name))
    if found is None or channel is None:
        hint = f"{name} is a plain channel" if channel else "`menzil endpoint list` shows those there are"
        raise UnknownNameError(f"There is no endpoint named {name!r}.", hint=hint)
    return {**found, "limits": {key: channel[key] for key in LIMITS}}


def endpoint(run: Run, name: str) -> dict[str, Any]:
    """Return it as described() does, its health, {"destination", "waits", "subscriptions",
    "happened", "dead", "as_of"}."""
    now = run(looking.now())
    row = described(run, name)
    (fares,) = run(health.get_endpoint_health(name))
    rules = {one["name"]: one["value"] for one in run(looking.settings())}
    dead = {one["endpoint_name"]: one["failed_count"] for one in run(history.dlq_summary())}
    return {
        **row,
        **fares,
        "destination": destination(row["protocol"], row["config"] or {}),
        "waits": waits(row["retry_policy"], rules),
        "subscriptions": run(looking.subscriptions(200, endpoint=name)),
        "happened": run(looking_tries.happened(name, 200))[:20],
        "dead": dead.get(name, 0),
        "as_of": now,
    }


def waits(policy: Mapping[str, Any] | None, rules: Mapping[str, str]) -> dict[str, Any]:
    """Return {"max_retries", "jitter", "waits": [{"retry", "wait_s", "after_s"}]}: what the policy means in seconds."""
    said = dict(policy or {})
    most = int(said.get("max_retries", rules["default_max_retries"]))
    base = float(said.get("base_delay_seconds", rules["retry_base_delay"]))
    longest = float(rules["retry_max_delay"])
    longest = float(said.get("max_delay_seconds", max(longest, base) if "base_delay_seconds" in said else longest))
    step = float(said.get("increment_seconds", rules["retry_increment"]))
    shape, jitter = said.get("backoff", "exponential"), said.get("jitter", 0)
    found, after = [], 0.0
    for number in range(min(most, MOST_WAITS)):
        wait = {"fixed": base, "linear": base + number * step}.get(shape, base * 2 ** min(number, 40))
        wait = min(wait, longest)
        after += wait
        found.append({"retry": number + 1, "wait_s": wait, "after_s": after})
    share = 0.5 if jitter is True else 0.0 if jitter is False else float(jitter)
    return {"max_retries": most, "backoff": shape, "jitter": share, "waits": found}


def circuit(run: Run, name: str, *, since: timedelta = timedelta(hours=6), steps: int = 72) -> dict[str, Any]:
    """Return {"from", "to", "step_s", "bands", "tries", "marks", "p50_ms", "p95_ms", "looked_through"}.

    `bands` are {"from", "to", "state"} with closed, half_open, open, rest, or unknown before the events that are looked
    through; `tries` has one row for each step with a count for each class of status.
    """
    now = run(looking.now())
    start = now - since
    (fares,) = run(health.get_endpoint_health(name))
    events = run(looking_tries.happened(name, MOST_EVENTS))[::-1]
    found = run(looking_tries.tries(name, start, run(looking_tries.newest_try())))
    step = since / steps
    rows: list[dict[str, Any]] = [{"at": start + place * step, **dict.fromkeys(CLASSES, 0)} for place in range(steps)]
    for one in found:
        rows[min(int((one["at"] - start) / step), steps - 1)][kind(one)] += 1
    times = sorted(one["duration_ms"] for one in found if one["duration_ms"] is not None)
    return {
        "from": start,
        "to": now,
        "step_s": step.total_seconds(),
        "bands": bands(events, start, now, fares, cut=len(events) >= MOST_EVENTS),
        "tries": rows,
        "marks": [one for one in events if one["at"] >= start and one["what"] not in CIRCUIT.keys() - {RESET}],
        "p50_ms": _share(times, 0.5),
        "p95_ms": _share(times, 0.95),
        "looked_through": looking_tries.WINDOW,
    }


def kind(one: Mapping[str, Any]) -> str:
    """The class of one try."""
    code = one["status_code"]
    if code is not None and 200 <= code < 600:
        return f"{code // 100}xx"
    return "2xx" if one["outcome"] == "completed" else "no answer"


def bands(
    events: Sequence[Mapping[str, Any]],
    start: datetime,
    now: datetime,
    fares: Mapping[str, Any],
    *,
    cut: bool = False,
) -> list[dict[str, Any]]:
    """The states of a circuit between two times, from the events that changed it, the oldest first.

    `cut`: there are older events than these, so before the first one nothing is known.
    """
    changes = [one for one in events if one["what"] in CIRCUIT]
    turns = [(one["at"], CIRCUIT[one["what"]]) for one in changes]
    before = [state for at, state in turns if at <= start]
    inside = [(at, state) for at, state in turns if start < at <= now]
    state = before[-1] if before else _UNTIL[changes[0]["what"]] if inside else str(fares["circuit_state"])
    found, begin = [], start
    if cut and events[0]["at"] > start:
        found, begin = [{"from": start, "to": events[0]["at"], "state": "unknown"}], events[0]["at"]
    for at, after in inside:
        if after != state:
            if at > begin:
                found.append({"from": begin, "to": at, "state": state})
            begin, state = at, after
    rest = max(fares["last_failure_at"] or begin, begin)
    if state == "closed" and fares["waits_until"] is not None and fares["waits_until"] > now > rest:
        # It asked to be left alone with its last answer; earlier rests leave no event.
        return [*found, {"from": begin, "to": rest, "state": state}, {"from": rest, "to": now, "state": "rest"}]
    return [*found, {"from": begin, "to": now, "state": state}]


def _share(times: Sequence[float], share: float) -> float | None:
    return times[min(int(len(times) * share), len(times) - 1)] if times else None
