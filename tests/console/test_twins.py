"""Twins: every page in JSON, with the keys that the command line prints."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner

from menzil.cli.main import main
from menzil.console.pages import all_pages
from tests.console.conftest import Full
from tests.console.paths import paths
from tests.console.seat import Browser


def printed(dsn: str, *words: str) -> Any:
    """What the command prints with --json; some end with 1 because there is something to fix."""
    command = [sys.executable, "-m", "menzil", *words, "--json", "--dsn", dsn]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert answer.returncode in (0, 1), answer.stderr
    return json.loads(answer.stdout)


def twin_of(full: Full, pattern: str) -> str:
    path, _, query = paths(full)[pattern].partition("?")
    found = next(page for page in all_pages() if page.path == pattern)
    return (found.twin_path or f"{path}.json") + (f"?{query}" if query else "")


@pytest.mark.parametrize("pattern", sorted(page.path for page in all_pages()))
def test_every_page_has_a_twin_and_names_it(seat: Browser, full: Full, pattern: str) -> None:
    answer = seat.get(twin_of(full, pattern))
    assert answer.status == 200, answer.text[:500]
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json not in ({}, [], None)
    link = f'rel="alternate" type="application/json" href="{twin_of(full, pattern)}"'
    assert link in seat.get(paths(full)[pattern]).text.replace("&amp;", "&")


def test_a_filter_that_a_page_does_not_have_is_refused_instead_of_ignored(seat: Browser) -> None:
    answer = seat.get("/messages.json?channel=billing")
    assert answer.status == 400
    assert answer.json == {
        "error": "This page does not read the query word 'channel'.", "hint": "It reads q, before, limit."
    }  # fmt: skip
    assert seat.get("/channels.json?contain=a").json["hint"] == "Did you mean contains?"
    assert seat.get("/settings.json?a=1").json["hint"] == "It reads none."
    # A page for people opens all the same, and its link to the JSON has only what the JSON reads.
    page = seat.get("/messages?q=status:failed&utm_source=mail")
    assert page.status == 200
    assert 'href="/messages.json?q=status%3Afailed"' in page.text


def test_value_that_a_page_does_not_know_is_refused_instead_of_replaced(seat: Browser) -> None:
    for path, said in (
        ("/overview.json?window=24h", "window is not '24h'."),
        ("/channels.json?sort=age", "sort is not 'age'."),
        ("/messages.json?limit=1000", "limit must be a whole number from 1 to 500, not '1000'."),
        ("/messages.json?limit=--5", "limit must be a whole number from 1 to 500, not '--5'."),
        ("/messages.json?before=abc", "before must be a whole number from 0 to"),
        ("/plans.json?before=x", "before must be a whole number from 0 to"),
        ("/audit.json?before=" + "1" * 30, "before must be a whole number from 0 to"),
        ("/dead.json?endpoint=" + "a" * 201, "endpoint has 201 characters, and at most 200 are read."),
        ("/messages.json?q=stauts:failed", "There is no qualifier stauts:."),
        ("/messages.json?q=since:1h+until:2h", "No time lies after since: and before until:"),
        ("/messages.json?q=channel:nowhere", "There is no channel or endpoint named 'nowhere'."),
    ):
        answer = seat.get(path)
        assert answer.status == 400, (path, answer.text[:300])
        assert said in answer.json["error"]
    assert seat.get("/messages.json?q=stauts:failed").json["hint"].startswith("Did you mean status:?")
    for path in ("/messages?limit=0", "/messages?before=abc", "/plans?before=x"):
        page = seat.get(path)
        assert page.status == 200
        assert "must be a whole number from" in page.words


def test_hundred_ids_are_read_to_the_last(seat: Browser, full: Full) -> None:
    ids = [str(10**18 + number) for number in range(99)] + [str(full.ids.waiting)]
    found = seat.get("/messages.json?q=id:" + ",".join(ids)).json
    assert [one["id"] for one in found["messages"]] == [full.ids.waiting]
    answer = seat.get("/messages.json?q=error:" + "x" * 4000)
    assert answer.status == 400
    assert answer.json["error"] == "q has 4,006 characters, and at most 4,000 are read."


def test_every_word_that_a_page_reads_is_one_that_it_asks_for() -> None:
    for page in all_pages():
        source = inspect.getsource(inspect.getmodule(next(iter(page.parts.values()))))
        read = re.findall(r'(?:look\.(?:text|number|line|place)|_number\(look,|query\.get)\(?"?\s*"?(\w+)"', source)
        assert set(read) <= set(page.asks), page.path


def shape(value: Any, depth: int = 3) -> Any:
    """The keys of a document, and of what it holds; a list has the keys of its rows."""
    if isinstance(value, dict) and depth:
        return {name: shape(one, depth - 1) for name, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [sorted({name for row in value for name in row})]
    return None


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("/workers.json", ["workers"]),
        ("/channels.json", ["channel", "state"]),
        ("/turns.json", ["channel", "turns"]),
        ("/plans.json", ["plan", "list"]),
        ("/plans/1.json", ["plan", "show", "1"]),
        ("/messages.json?q=status:failed", ["message", "list", "--status", "failed"]),
    ],
)
def test_twin_of_a_list_has_the_keys_of_the_command(seat: Browser, full: Full, path: str, command: list[str]) -> None:
    assert shape(seat.get(path).json) == shape(printed(full.dsn, *command))


def rows_of(value: Any, name: str | None) -> set[str]:
    """The keys of the rows of a list, or of the list below a name."""
    rows = value if isinstance(value, list) else value[name] if name else [value]
    assert rows
    return {key for row in rows for key in row}


@pytest.mark.parametrize(
    ("path", "below", "command"),
    [
        ("/schedules.json", "schedules", ["schedule", "list"]),
        ("/endpoints.json", "endpoints", ["endpoint", "health"]),
        ("/settings.json", None, ["settings", "list"]),
        ("/overview.json", None, ["top", "--once"]),
    ],
)
def test_page_tells_at_least_what_the_command_tells(
    seat: Browser, full: Full, path: str, below: str | None, command: list[str]
) -> None:
    answer = CliRunner().invoke(main, [*command, "--json", "--dsn", full.dsn])
    assert answer.exit_code == 0, answer.output
    told = json.loads(answer.stdout)
    missing = rows_of(told, below if isinstance(told, dict) and below in told else None) - rows_of(
        seat.get(path).json, below
    )
    assert not missing - {"channels"}, "the overview names the worst channels, and the page of channels all"


def test_twin_of_a_channel_has_the_keys_of_the_command(seat: Browser, full: Full) -> None:
    twin = seat.get("/channels/billing.json").json
    assert twin.keys() - {"curve", "leases"} == printed(full.dsn, "channel", "state", "billing").keys()


def test_twin_of_a_message_has_the_keys_of_the_command(seat: Browser, full: Full) -> None:
    twin = seat.get(f"/messages/{full.ids.retrying}.json").json
    assert set(printed(full.dsn, "message", "show", str(full.ids.retrying))) <= twin.keys()
    for name in ("why", "life"):
        assert shape(twin[name]) == shape(printed(full.dsn, "message", name, str(full.ids.retrying))[name])


def test_twin_of_a_comparison_has_the_keys_of_the_command(seat: Browser, full: Full) -> None:
    a, b = full.ids.waiting, full.ids.exact
    twin = seat.get(f"/compare.json?a={a}&b={b}").json
    assert shape(twin) == shape(printed(full.dsn, "message", "compare", str(a), str(b)))


def test_twin_of_health_has_the_keys_of_the_doctor(seat: Browser, full: Full) -> None:
    found, told = seat.get("/health.json").json, printed(full.dsn, "doctor")
    assert shape(found) == shape(told)
    assert found["ok"] is told["ok"] is False
    checks = [{row["check"] for row in one["findings"]} for one in (found, told)]
    assert checks[1] - checks[0] == {"database", "schema"}, "the command compares the schema, too"
    assert checks[0] <= checks[1]


def test_twin_of_what_is_not_there_says_so(seat: Browser) -> None:
    answer = seat.get("/channels/biling.json")
    assert answer.status == 404
    assert answer.json["error"] == "There is no channel named 'biling'."
