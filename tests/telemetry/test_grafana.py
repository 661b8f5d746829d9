"""The dashboard and the alerts ask for metrics and labels that the exporter really has."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import menzil
from menzil.telemetry.exporter import is_down
from menzil.telemetry.exporters import Exporters
from menzil.telemetry.metric_names import FAMILIES, REASONS
from menzil.telemetry.samples import written
from menzil.telemetry.worker_samples import Counted, WorkerCounts, several_page, worker_page
from tests.telemetry import plain_yaml
from tests.telemetry.scraped import asking, scrape, series

ROOT = Path(__file__).resolve().parents[2]
ALERTS = (ROOT / "grafana" / "alerts.yml").read_text()
DASHBOARD = json.loads((ROOT / "grafana" / "menzil.json").read_text())
#: Labels that Prometheus adds, or that stand for a bucket.
ADDED = {"instance", "job", "le"}

NAME = re.compile(r"\b(menzil_\w+|process_\w+|python_\w+)\b(\{[^}]*\})?")
LABEL = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
LEGEND = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


def rules() -> list[dict[str, Any]]:
    (group,) = plain_yaml.read(ALERTS)["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    """Every query, and a text in which labels of its answer are named."""
    for rule in rules():
        yield rule["expr"], " ".join(rule["annotations"].values())
    for panel in panels():
        for target in panel["targets"]:
            yield target["expr"], target["legendFormat"]


@pytest.fixture
def real(db: str, mq: menzil.Menzil) -> dict[str, set[str]]:
    """The labels of every series that a busy database and a worker say."""
    mq.channel_set("billing", max_concurrency=1, release_interval=60, release_count=1)
    mq.create_endpoint("partner", "http", {"url": "https://example.com/"})
    for channel in ("billing", "partner"):
        mq.send(channel, {})
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(
            "select menzil.feed_advance('lake', 'archive', (select p.xid from menzil.feed_position('archive') p), 0)"
        )
        conn.execute("call menzil.run_jobs()")
    counts = WorkerCounts(timed=True)
    counts.leased(mq.dequeue(limit=10), 0.001)
    counted = Counted(counts, {"completed": 1}, 0)
    pages = [worker_page(counted, None), several_page({"shop": counted._replace(up=True)}, None)]
    with asking(db) as asked:
        exporters = Exporters({"shop": asked.run})
        pages.append(exporters.render())
        exporters.close()
    found: dict[str, set[str]] = {}
    for name, labels in (*scrape(db), *(one for _, body in pages for one in series(body))):
        found.setdefault(name, set()).update(label for label, _ in labels)
    return found


def test_every_metric_and_label_of_a_query_is_real(real: dict[str, set[str]]) -> None:
    for query, text in queries():
        used: set[str] = set()
        for name, matchers in NAME.findall(query):
            assert name in real, query
            assert set(LABEL.findall(matchers)) <= real[name] | ADDED, query
            used |= real[name]
        assert NAME.search(query), query
        for group in GROUPED.findall(query):
            assert {label.strip() for label in group.split(",")} <= used | ADDED, query
        assert set(LEGEND.findall(text)) <= used | ADDED | {"value"}, (query, text)


def test_queries_are_balanced() -> None:
    for query, _ in queries():
        for opening, closing in ("()", "[]", "{}"):
            assert query.count(opening) == query.count(closing), query


def test_the_board_shows_every_metric(real: dict[str, set[str]]) -> None:
    shown = {name for panel in panels() for target in panel["targets"] for name, _ in NAME.findall(target["expr"])}
    assert {name for name in FAMILIES if not any(one.startswith(name) for one in shown)} == set()


def test_the_board_has_its_rows_in_order() -> None:
    rows = [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"]
    assert rows == ["Now", "Flow", "Delivery", "Limits", "Endpoints", "Workers", "Lake", "Database"]
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_no_two_panels_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells


def test_the_board_is_what_the_tool_makes() -> None:
    spec = importlib.util.spec_from_file_location("dashboard", ROOT / "tools" / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "grafana" / "menzil.json").read_text() == tool.written()


def test_alerts_look_at_each_database_for_itself() -> None:
    # Where one exporter shows several: a channel paused in one must not silence the same name in another one.
    for rule in rules():
        groups = GROUPED.findall(rule["expr"])
        assert len(groups) == len(re.findall(r"\b(?:sum|min|max) by", rule["expr"])) > 0
        for group in groups:
            assert {"instance", "database"} <= {label.strip() for label in group.split(",")}, rule["expr"]


def test_a_database_that_does_not_answer_fires_an_alert() -> None:
    # Its gauges are gone then, so that no other rule has a value to compare.
    told = series(written(list(is_down().families()), None)[1])
    asked = {rule["alert"]: {name for name, _ in NAME.findall(rule["expr"])} for rule in rules()}
    assert [alert for alert, names in asked.items() if names <= {name for name, _ in told}] == ["MenzilDown"]


def test_there_are_nine_alerts_and_each_says_what_to_do() -> None:
    found = rules()
    assert len(found) == len({rule["alert"] for rule in found}) == 9
    for rule in found:
        assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"\d+[smh]", rule["for"])
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"].keys() == {"summary", "description"}
        assert rule["annotations"]["summary"].endswith(".")


def test_alerts_name_commands_that_exist() -> None:
    from menzil.cli.main import COMMANDS

    named = re.findall(r"`menzil ([a-z-]+)", ALERTS)
    assert named
    assert set(named) <= COMMANDS.keys()


def test_a_message_that_cannot_be_leased_is_not_said_to_wait_for_a_worker() -> None:
    """As in the check `oldest_message`. Open circuits have an alert of their own, and limits let messages go."""
    (rule,) = (rule for rule in rules() if rule["alert"] == "MenzilMessageWaits")
    (matched,) = re.findall(r'menzil_channel_held\{reason=~"([^"]*)"\}', rule["expr"])
    assert set(matched.split("|")) == {"paused", "disabled", "circuit", "rest"} <= set(REASONS)
