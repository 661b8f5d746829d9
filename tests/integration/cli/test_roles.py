"""The command in the hands of people who own nothing: an administrator, a monitor, two at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil import Menzil
from menzil.cli.endpoint import config
from tests.integration.cli.user import User


@pytest.fixture
def member(user: User) -> Iterator[Callable[[str], User]]:
    """Somebody who has only the rights of one group role."""
    with psycopg.connect(user.dsn, autocommit=True) as conn:

        def make(role: str) -> User:
            conn.execute(f"create role cli_member login password 'x' in role {role}")
            return User(make_conninfo(user.dsn, user="cli_member", password="x"))

        yield make
        conn.execute("drop role if exists cli_member")


def test_an_administrator_needs_no_more_than_the_role_gives(
    user: User, mq: Menzil, member: Callable[[str], User]
) -> None:
    admin = member("menzil_admin")
    admin.gets("channel", "set", "other", "--max-size", "5")
    admin.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    admin.gets("endpoint", "rotate", "hook")
    sent = admin.gets("send", "other", "1")
    mq.fail(mq.dequeue()[0], "no", permanent=True)
    for words in (
        ["message", "show", sent],
        ["message", "list"],
        ["message", "peek", "other"],
        ["channel", "list"],
        ["channel", "show", "other"],
        ["channel", "purge", "other", "--yes"],
        ["endpoint", "show", "hook"],
        ["endpoint", "health"],
        ["settings", "list"],
        ["schedule", "list"],
        ["event-type", "list"],
        ["subscription", "list"],
        ["dlq", "causes"],
        ["dlq", "list"],
        ["dlq", "cleanup", "--yes"],
        ["dlq", "redrive", "--all", "--yes"],
        ["replay", "--endpoint", "other", "--from", "-1h", "--yes"],
        ["archive", "maintain"],
        ["archive", "cleanup", "--yes"],
        ["report", "--out", os.devnull],
        ["archive", "verify"],
        ["workers"],
        ["metrics"],
    ):
        admin.reads(*words)


def test_a_monitor_sees_numbers_and_no_messages(user: User, member: Callable[[str], User]) -> None:
    sent = user.gets("send", "work", '"private"')
    monitor = member("menzil_monitor")
    for words in (
        ["channel", "list"],
        ["endpoint", "list"],
        ["endpoint", "health"],
        ["settings", "list"],
        ["event-type", "list"],
        ["dlq", "summary"],
        ["workers"],
        ["metrics"],
    ):
        monitor.reads(*words)
    for words, role in (
        (["message", "show", sent], "menzil_application"),
        (["message", "list"], "menzil_pipeline"),
        (["send", "work", "1"], "menzil_application"),
        (["channel", "pause", "work"], "menzil_admin"),
    ):
        sentence, hint = monitor.fails(*words).splitlines()
        command = " ".join(words[: 1 if words[0] == "send" else 2])
        assert sentence.startswith(f"Error: Role cli_member may not run `menzil {command}`: permission denied for ")
        assert hint == f"Hint: let an administrator run: grant {role} to cli_member"


def test_a_pipeline_sees_how_one_channel_stands_without_its_workers(user: User, member: Callable[[str], User]) -> None:
    sent = user.gets("send", "work", "1")
    pipeline = member("menzil_pipeline")
    shown = pipeline.reads("channel", "state", "work")
    assert (shown["waiting"], [one["id"] for one in shown["next"]]) == (1, [int(sent)])
    assert shown["served_by"] is None
    assert "served by" not in pipeline.gets("channel", "state", "work")


def test_a_monitor_sees_when_schedules_send_and_not_what(user: User, member: Callable[[str], User]) -> None:
    user.gets("schedule", "create", "nightly", "0 3 * * *", "work", '"private"')
    assert user.reads("schedule", "list")[0]["payload"] == "private"
    monitor = member("menzil_monitor")
    (seen,) = monitor.reads("schedule", "list")
    assert (seen["name"], seen["cron"], seen["payload"]) == ("nightly", "0 3 * * *", None)
    assert "nightly" in monitor.gets("schedule", "list")


@pytest.mark.parametrize("role", ["monitor", "pipeline"])
def test_who_looks_at_bridges_sees_no_secrets(user: User, member: Callable[[str], User], role: str) -> None:
    user.gets("bridge", "create", "b", "--protocol", "redis", "--config", REDIS, "--channel", "work")
    person = member(f"menzil_{role}")
    assert person.reads("bridge", "show", "b")["config"]["host"] == "127.0.0.1"
    for words in (["list"], ["show", "b"]):
        assert "hush" not in person.gets("bridge", *words) + person.gets("bridge", *words, "--json")
    for words in (["plan", "b"], ["lag", "b"], ["run", "b", "--once"]):
        assert "permission denied for function bridge_open" in person.types("bridge", *words).output
    with psycopg.connect(person.dsn, autocommit=True) as conn:
        for text in (
            "select * from menzil.bridge_secret",
            "select menzil._bridge_config(b) from menzil.bridge b",
            "select * from menzil.bridge_open('b', 'i', 'h', 1, '0')",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(text.encode())


def test_an_application_is_shown_the_status_of_its_message(user: User, member: Callable[[str], User]) -> None:
    application = member("menzil_application")
    sent = application.gets("send", "work", '"private"')
    seen = application.reads("message", "show", sent)
    assert (seen["id"], seen["status"], seen["channel"]) == (int(sent), "pending", "work")
    assert "payload" not in seen
    assert "pending" in application.gets("message", "show", sent)
    application.gets("message", "cancel", sent)
    assert application.reads("message", "show", sent)["status"] == "cancelled"
    assert "There is no message 999" in application.fails("message", "show", "999")


def test_two_who_change_an_endpoint_at_once_lose_nothing(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/", "--header", "x-a=1")
    merge, tries = config.merged, []

    def meanwhile(*given: Any) -> Any:
        # Somebody else is quicker, once, between our look and our change.
        tries.append(given)
        if len(tries) == 1:
            monkeypatch.setattr(config, "merged", merge)
            user.gets("endpoint", "alter", "hook", "--config", '{"timeout_seconds": 7}')
            monkeypatch.setattr(config, "merged", meanwhile)
        return merge(*given)

    monkeypatch.setattr(config, "merged", meanwhile)
    user.gets("endpoint", "alter", "hook", "--header", "x-b=2")
    found = user.reads("endpoint", "show", "hook")["config"]
    assert (found["timeout_seconds"], found["headers"]) == (7, {"x-a": "1", "x-b": "2"})


#: Commands of one word.
SINGLE = {
    "send", "publish", "worker", "workers", "metrics", "replay", "report", "subscribe", "unsubscribe", "pulse", "top",
}  # fmt: skip

#: A source that is away: port 1 has no server.
REDIS = '{"host":"127.0.0.1","port":1,"stream":"s","start":"earliest","auth":{"password":"hush"}}'

#: Every command that asks the database, with arguments that let it ask.
WORDS = [
    "send work 1", "publish e {}", "worker --once", "workers", "metrics",
    "endpoint list", "endpoint show hook", "endpoint health", "endpoint create new --url https://example.com/",
    "endpoint alter hook --url https://example.com/", "endpoint enable hook", "endpoint disable hook",
    "endpoint pause hook", "endpoint resume hook", "endpoint reset hook", "endpoint rotate hook", "endpoint drop hook",
    "channel list", "channel show work", "channel set work", "channel pause work", "channel resume work",
    "channel release other", "channel purge work --yes",
    "settings list", "settings get notify", "settings set notify on",
    "schedule list", "schedule pause s", "schedule resume s", "schedule drop s",
    "channel state", "channel turns", "pulse", "top --once",
    "message why 1", "message life 1", "message compare 1 1",
    "message show 1", "message list", "message peek work", "message cancel 1", "message retry-now 1",
    "dlq summary", "dlq causes", "dlq list", "dlq show 1", "dlq redrive 1", "dlq cleanup --yes",
    "replay 1", "archive maintain", "archive cleanup --yes", "archive verify",
    "event-type list", "event-type create f", "event-type drop e",
    "subscribe e hook", "unsubscribe 99", "subscription list", f"report --out {os.devnull}",
    "plan list", "plan show 1", "plan create redrive --all", "plan run 1", "plan pause 1", "plan stop 1",
    "bridge list", "bridge show b", "bridge plan b", "bridge lag b", "bridge run b --once",
    f"bridge create c --protocol redis --config {REDIS} --channel work", "bridge alter b --start latest",
    "bridge pause b", "bridge resume b", "bridge seek b s 1-0", "bridge drop b",
]  # fmt: skip


@pytest.mark.parametrize("role", ["application", "worker", "monitor", "pipeline"])
def test_the_page_says_which_role_may_run_which_command(user: User, member: Callable[[str], User], role: str) -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
    (row,) = [line for line in page.read_text().splitlines() if line.startswith(f"| `menzil_{role}` |")]
    may = set(re.findall(r"`([^`]+)`", row.split("|")[2])) - {"pipeline"}
    user.gets("event-type", "create", "e")
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    user.gets("bridge", "create", "b", "--protocol", "redis", "--config", REDIS, "--channel", "work")
    user.gets("plan", "create", "redrive", "--all", "--yes")
    person = member(f"menzil_{role}")
    refused = set()
    for words in WORDS:
        answer = person.types(*words.split())
        if "permission denied" in answer.output or "may not" in answer.output:
            refused.add(words)
    names = {words: " ".join(words.split()[: 1 if words.split()[0] in SINGLE else 2]) for words in WORDS}
    assert {names[words] for words in WORDS if words not in refused} == may
