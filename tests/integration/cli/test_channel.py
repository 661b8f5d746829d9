"""`menzil channel`, `menzil settings` and `menzil schedule` as a user types them."""

from __future__ import annotations

from typing import Any

import pytest

from menzil import Menzil
from tests.integration.cli.user import User


def limits(user: User, name: str) -> dict[str, Any]:
    found = user.reads("channel", "show", name)
    keys = ("max_concurrency", "max_size", "release_interval_ms", "release_count", "on_dead")
    return {key: found[key] for key in keys}


def test_a_channel_keeps_the_limits_nobody_speaks_of(user: User) -> None:
    words = ["--max-concurrency", "3", "--max-size", "10", "--release-interval", "1m", "--release-count", "5"]
    user.gets("channel", "set", "slow", *words, "--on-dead", "block")
    made = {"max_concurrency": 3, "max_size": 10, "release_interval_ms": 60000, "release_count": 5, "on_dead": "block"}
    assert limits(user, "slow") == made
    user.gets("channel", "set", "slow", "--max-size", "none")
    assert limits(user, "slow") == {**made, "max_size": None}
    user.gets("channel", "set", "slow", "--max-concurrency", "none", "--release-interval", "0")
    assert limits(user, "slow") == {**made, "max_size": None, "max_concurrency": None, "release_interval_ms": 0}


def test_channels_are_listed_by_name(user: User) -> None:
    user.gets("channel", "set", "another")
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    assert [one["name"] for one in user.reads("channel", "list")] == ["another", "hook", "work"]
    assert user.gets("channel", "list", "--after", "hook").splitlines()[1].split()[:2] == ["work", "no"]


def test_a_channel_shows_what_it_holds_and_which_keys_are_blocked(user: User, mq: Menzil) -> None:
    user.gets("channel", "set", "work", "--on-dead", "block")
    user.gets("send", "work", "1", "--ordering-key", "customer-7")
    (message,) = mq.dequeue()
    mq.fail(message, "no such customer", permanent=True)
    user.gets("send", "work", "2", "--ordering-key", "customer-7")
    found = user.reads("channel", "show", "work")
    assert (found["pending"], found["processing"]) == (1, 0)
    assert [key["ordering_key"] for key in found["blocked_keys"]] == ["customer-7"]
    assert "Ordering key customer-7 is blocked by dead letter" in user.types("channel", "show", "work").stderr


def test_a_paused_channel_holds_its_messages(user: User, mq: Menzil) -> None:
    user.gets("send", "work", "1")
    user.gets("channel", "pause", "work")
    assert mq.dequeue() == []
    user.gets("channel", "resume", "work")
    assert len(mq.dequeue()) == 1


def test_a_released_channel_disappears(user: User) -> None:
    user.gets("channel", "release", "work")
    assert user.reads("channel", "list") == []


def test_purge_shows_its_plan_and_changes_nothing_without_yes(user: User) -> None:
    for number in range(3):
        user.gets("send", "work", str(number))
    result = user.types("channel", "purge", "work")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Cancels 3 waiting messages of channel work" in result.stderr
    assert "--yes" in result.stderr
    plan = user.plans("channel", "purge", "work")
    assert (plan["plan"]["messages"], plan["done"]) == (3, None)
    assert user.reads("channel", "show", "work")["pending"] == 3
    assert user.gets("channel", "purge", "work", "--yes") == "3"
    assert user.reads("channel", "show", "work")["pending"] == 0
    assert user.reads("channel", "purge", "work", "--yes")["done"] == {"messages": 0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "nobody"], "There is no channel named 'nobody'."),
        (["pause", "nobody"], "There is no channel or endpoint named 'nobody'."),
        (["release", "nobody"], "There is no channel or endpoint named 'nobody'."),
        (["purge", "nobody", "--yes"], "There is no channel named 'nobody'."),
        (["set", "work", "--max-size", "0"], "'0' is not a valid limit."),
        (["set", "work", "--max-size", "many"], "'many' is not a valid limit."),
        (["set", "work", "--on-dead", "panic"], "'panic' is not one of"),
        (["set", "work", "--release-interval", "2d"], "must be 0 ms to a day"),
        (["set", ""], "name"),
        (["list", "--limit", "0"], "0 is not in the range"),
    ],
)  # fmt: skip
def test_what_a_channel_cannot_do_is_one_sentence(user: User, words: list[str], said: str) -> None:
    assert said in user.fails("channel", *words)


def test_settings_are_listed_read_and_changed(user: User) -> None:
    listed = {one["name"]: one for one in user.reads("settings", "list")}
    assert listed["retry_base_delay"]["value"] == "10"
    assert "retry_base_delay" in user.gets("settings", "list")
    user.gets("settings", "set", "retry_base_delay", "5 min")
    assert user.gets("settings", "get", "retry_base_delay") == "300"
    user.gets("settings", "set", "retry_base_delay", "default")
    assert user.reads("settings", "get", "retry_base_delay") == {"name": "retry_base_delay", "value": "10"}
    assert "Did you mean retry_base_delay?" in user.fails("settings", "get", "retry_base_dealy")
    assert "is not a value for the setting" in user.fails("settings", "set", "notify", "perhaps")


def test_a_schedule_lives_from_create_to_drop(user: User) -> None:
    words = ["--time-zone", "Europe/Berlin", "--priority", "2", "--header", "x-a=1", "--expires", "1h"]
    user.gets("schedule", "create", "nightly", "0 3 * * *", "work", '{"job": "report"}', *words)
    (found,) = user.reads("schedule", "list")
    assert (found["name"], found["payload"], found["time_zone"]) == ("nightly", {"job": "report"}, "Europe/Berlin")
    assert (found["priority"], found["headers"], found["expires_after"]) == (2, {"x-a": "1"}, 3600.0)
    user.gets("schedule", "pause", "nightly")
    assert user.gets("schedule", "list").splitlines()[1].split()[:1] == ["nightly"]
    assert user.reads("schedule", "list")[0]["paused"] is True
    user.gets("schedule", "resume", "nightly")
    user.gets("schedule", "drop", "nightly")
    assert user.reads("schedule", "list") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "s", "61 * * * *", "work"], "61"),
        (["create", "s", "* * * * *", "nowhere"], "nowhere"),
        (["create", "s", "* * * * *", "work", "nope"], "The body is not JSON"),
        (["create", "s", "* * * * *", "work", "--time-zone", "Mars"], "Mars"),
        (["pause", "nobody"], "nobody"),
        (["resume", "nobody"], "nobody"),
        (["drop", "nobody"], "nobody"),
    ],
)  # fmt: skip
def test_what_a_schedule_cannot_be_is_one_sentence(user: User, words: list[str], said: str) -> None:
    assert said in user.fails("schedule", *words)
