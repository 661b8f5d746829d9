"""Secrets, redacted keys and payloads are in no metric, no span, no log line and no error column."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from menzil.telemetry.exporter import Exporter
from tests.canary.canaries import ALL, STORED, Canaries, Kind
from tests.canary.fixtures import Planted
from tests.canary.planting import CHANNEL, KEYED
from tests.telemetry.scraped import OPENMETRICS, asking, count_now
from tests.telemetry.sdk import Sdk, measuring

#: Every column in which a worker or a job writes what went wrong, or what the other side said.
ERRORS = """
select 'attempts', error || coalesce(response::text, '') from menzil.attempts where worker = 'canary-worker'
union all select 'dlq', last_error || attempts::text from menzil.dlq where endpoint_name <> 'canary-sql'
union all select 'queue', last_error from menzil.queue where channel <> 'canary-sql'
union all select 'archive', response::text from menzil.archive
union all select 'jobs', last_error from menzil.jobs
union all select 'schedules', last_error from menzil.schedules
union all select 'event_log', to_jsonb(e)::text from menzil.event_log e
union all select 'endpoints', config::text from menzil.endpoints
union all select 'workers', to_jsonb(w)::text from menzil.get_worker_status() w
union all select 'causes', to_jsonb(c)::text from menzil.dlq_causes() c where c.endpoint_name <> 'canary-sql'
union all select 'health', to_jsonb(h)::text from menzil.health_check() h"""


def test_a_canary_is_found_however_it_is_spelled() -> None:
    import base64

    canaries = Canaries()
    text = canaries.of(Kind.SECRET, "here")
    for spelled in (text, text.upper(), f"x{text}y", text.encode().hex(), f"a={text}&b"):
        assert canaries.found(spelled)
    for before in ("", "a", "ab", "user:"):
        assert canaries.found(base64.b64encode(f"{before}{text}:more".encode()))
    assert canaries.found(text.encode("utf-16"))
    assert not canaries.found("nothing to see", ALL)
    assert not canaries.found(text, {Kind.PAYLOAD})
    with pytest.raises(AssertionError, match="secret of here"):
        canaries.clean(f"so {text}", "a page")
    with pytest.raises(AssertionError, match="empty"):
        canaries.clean("", "a page")


def test_canaries_reach_the_receiver_and_no_error_column(planted: Planted) -> None:
    planted.work()
    wire = "\n".join(planted.receiver.requests)
    reached = {canary.where for canary in planted.canaries.found(wire)}
    for where in ("query of the url", "basic password", "bearer token", "header X-Api-Key", "proxy password"):
        assert where in reached  # otherwise this test would prove nothing
    with psycopg.connect(planted.dsn) as conn:
        rows = conn.execute(ERRORS).fetchall()
    told = {where for where, text in rows if text}
    assert {"attempts", "dlq", "archive", "event_log", "endpoints", "workers", "causes", "health"} <= told
    for where, text in rows:
        if text:
            planted.canaries.clean(text, where, STORED)


def test_canaries_are_in_no_log_line(planted: Planted) -> None:
    planted.work()
    assert "failed" in planted.logs["text"]
    assert "Traceback" in planted.logs["text"]
    for name, text in planted.logs.items():
        planted.canaries.clean(text, f"the log as {name}", {Kind.SECRET, Kind.REDACTED, Kind.KEY})
    for line in planted.logs["json"].splitlines():
        if json.loads(line).get("channel") not in (CHANNEL, KEYED):  # whose exceptions repeat the payload
            planted.canaries.clean(line, "an event of the worker itself")


def test_canaries_are_in_no_span_and_no_measurement(planted: Planted, sdk: Sdk) -> None:
    planted.work()
    spans = [span.to_json() for span in sdk.spans()]
    assert len(spans) > 20
    planted.canaries.clean("\n".join(spans), "the spans")


def test_canaries_are_in_no_measurement(planted: Planted) -> None:
    with measuring() as reader:
        planted.work()
        data: Any = reader.get_metrics_data()
    planted.canaries.clean(data.to_json(), "the measurements")


def test_canaries_are_in_no_metric(planted: Planted) -> None:
    planted.work()
    count_now(planted.dsn)
    with asking(planted.dsn) as asked:
        exporter = Exporter(asked.run)
        for accept in (None, OPENMETRICS):
            _, body = exporter.render(accept)
            planted.canaries.clean(body, "the metrics")


def test_a_database_that_refuses_says_no_secret(planted: Planted, caplog: pytest.LogCaptureFixture) -> None:
    with asking(planted.dsn) as asked:
        exporter = Exporter(asked.run)
        asked.conn.close()
        _, body = exporter.render()
    planted.canaries.clean(body, "the metrics")
    planted.canaries.clean(caplog.text, "the log of the exporter")
