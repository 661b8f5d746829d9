"""The command in the hands of people who own nothing: an administrator, a monitor, two at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
        ["channel", "purge", "other"],
        ["endpoint", "show", "hook"],
        ["endpoint", "health"],
        ["settings", "list"],
        ["schedule", "list"],
        ["event-type", "list"],
        ["subscription", "list"],
        ["dlq", "causes"],
        ["dlq", "list"],
        ["dlq", "cleanup"],
        ["dlq", "redrive", "--all", "--yes"],
        ["replay", "--endpoint", "other", "--from", "-1h", "--yes"],
        ["archive", "maintain"],
        ["archive", "cleanup"],
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
    for words in (["message", "show", sent], ["message", "list"], ["send", "work", "1"], ["channel", "pause", "work"]):
        assert "permission denied" in monitor.fails(*words)


def test_two_who_change_an_endpoint_at_once_lose_nothing(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/", "--header", "x-a=1")
    merge, tries = config.merged, []

    def meanwhile(*given: object) -> object:
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
