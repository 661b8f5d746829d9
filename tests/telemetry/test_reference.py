"""The reference page says what the code says, and the guides say what is there."""

from __future__ import annotations

import re
from pathlib import Path

from menzil.cli.metrics import PORT
from menzil.telemetry.exporter import FRESH
from menzil.telemetry.metric_names import MOST
from menzil.telemetry.tracing import Tracing
from tests.telemetry import plain_yaml
from tests.telemetry.reference import PAGE, page

ROOT = Path(__file__).resolve().parents[2]
MONITOR = (ROOT / "docs" / "how-to" / "monitor-with-prometheus.md").read_text()
TRACE = (ROOT / "docs" / "how-to" / "trace-through-the-queue.md").read_text()


def test_the_reference_is_what_the_code_says() -> None:
    assert PAGE.read_text() == page(), "python -m tests.telemetry.reference writes it"


def test_the_guide_lists_every_alert() -> None:
    (group,) = plain_yaml.read((ROOT / "grafana" / "alerts.yml").read_text())["groups"]
    listed = re.findall(r"^\| `(\w+)` \|", MONITOR, re.MULTILINE)
    assert listed == [rule["alert"] for rule in group["rules"]]


def test_the_guide_has_the_numbers_of_the_code() -> None:
    assert f"127.0.0.1:{PORT}/metrics" in MONITOR
    assert f"The {MOST} channels" in MONITOR
    assert f"kept for {FRESH:g} seconds" in MONITOR


def test_the_guide_lists_every_way_of_tracing() -> None:
    listed = re.findall(r"^\| `(\w+)=", TRACE, re.MULTILINE)
    assert listed == list(Tracing.__dataclass_fields__)
