"""Every twin has every key that the command of its page prints with --json."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from menzil.cli.main import main
from menzil.console.pages import all_pages
from tests.console.conftest import Full
from tests.console.paths import paths
from tests.console.seat import Browser

#: Documents of users: their keys are not ours.
FREE = {
    "changes", "config", "content", "detail", "filter", "headers", "labels", "metadata", "new_value", "old_value",
    "payload", "request", "response", "retry_policy", "schema", "state",
}  # fmt: skip

#: Pages that no command prints.
ALONE = {"/audit", "/lake", "/send"}

#: Keys of a command that another page has: the overview names the worst channels, /channels all of them.
ELSEWHERE = {"/": "channels"}


def commands(full: Full) -> dict[str, list[tuple[list[str], tuple[str, ...]]]]:
    """By page: commands that tell the same, and below which keys of the twin their own keys may stand."""
    a, b = full.ids.waiting, full.ids.exact
    return {
        "/": [(["top", "--once"], ("",))],
        "/channels": [(["channel", "state"], ("",))],
        "/channels/{name}": [(["channel", "state", "billing"], ("",))],
        "/turns": [(["channel", "turns"], ("",))],
        "/messages": [(["message", "list", "--status", "pending"], ("",))],
        "/messages/{id}": [([*words, str(a)], ("",)) for words in SHOWN],
        "/compare": [(["message", "compare", str(a), str(b)], ("",))],
        "/endpoints": [(["endpoint", "health"], ("endpoints.",))],
        "/endpoints/{name}": [(["endpoint", "show", "crm"], ("",)), (["endpoint", "health", "crm"], ("",))],
        # A cause of several endpoints has no one name: what is true of one endpoint stands with it.
        "/dead": [(["dlq", "causes"], ("causes.", "causes.endpoints."))],
        "/dead/{hash}": [
            (["dlq", "causes"], ("", "endpoints.")),
            (["dlq", "list", "--status", "failed"], ("letters.",)),
        ],
        "/plans": [(["plan", "list"], ("",))],
        "/plans/{id}": [(["plan", "show", str(full.ids.plan)], ("",))],
        "/schedules": [(["schedule", "list"], ("schedules.",))],
        "/bridges": [(["bridge", "list"], ("bridges.",))],
        "/events": [
            (["event-type", "list"], ("event_types.",)),
            (["subscription", "list"], ("event_types.subscriptions.",)),
        ],
        "/workers": [(["workers"], ("",))],
        "/health": [(["doctor"], ("",))],
        "/settings": [(["settings", "list"], ("",))],
    }


SHOWN = (["message", "show"], ["message", "why"], ["message", "life"])


def keys(value: Any, below: str = "") -> set[str]:
    """The keys of a document with the keys above them; rows of a list count as one."""
    if isinstance(value, list):
        return {name for one in value for name in keys(one, below)}
    if not isinstance(value, dict):
        return set()
    found = {f"{below}{name}" for name in value}
    for name, one in value.items():
        found |= set() if name in FREE else keys(one, f"{below}{name}.")
    return found


def printed(dsn: str, words: list[str]) -> Any:
    """What the command prints with --json; the doctor ends with 1 where there is something to fix."""
    answer = CliRunner().invoke(main, [*words, "--json", "--dsn", dsn])
    assert answer.exit_code in (0, 1), answer.output
    return json.loads(answer.stdout)


def test_every_twin_has_the_keys_of_its_command(seat: Browser, full: Full) -> None:
    asked, urls = commands(full), paths(full)
    pages = {page.path: page for page in all_pages()}
    assert asked.keys() | ALONE == pages.keys(), "a page without a command is named in ALONE"
    missing = {}
    for path, told in asked.items():
        address, _, query = urls[path].partition("?")
        twin = keys(seat.get((pages[path].twin_path or f"{address}.json") + f"?{query}").json)
        for words, places in told:
            wanted = keys(printed(full.dsn, words))
            wanted = {name for name in wanted if name.split(".")[0] != ELSEWHERE.get(path)}
            assert wanted, words
            lost = sorted(name for name in wanted if not any(f"{place}{name}" in twin for place in places))
            if lost:
                missing[path, " ".join(words)] = lost
    assert missing == {}
