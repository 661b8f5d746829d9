"""`menzil event-type`, `subscribe`, `unsubscribe`, `subscription` and `publish` as a user types them."""

from __future__ import annotations

import json

import pytest

from tests.integration.cli.user import User

SCHEMA = {"type": "object", "required": ["order"]}


@pytest.fixture
def shop(user: User) -> User:
    """Two channels and one kind of event."""
    user.gets("channel", "set", "other")
    user.gets(
        "event-type", "create", "order.placed", "--description", "Somebody bought", "--schema", json.dumps(SCHEMA)
    )
    return user


def test_event_types_are_made_listed_and_dropped(shop: User) -> None:
    (found,) = shop.reads("event-type", "list")
    assert (found["name"], found["description"], found["schema"]) == ("order.placed", "Somebody bought", SCHEMA)
    assert shop.gets("event-type", "list").splitlines()[1].split()[:2] == ["order.placed", "yes"]
    shop.gets("event-type", "drop", "order.placed")
    assert "menzil event-type create" in shop.types("event-type", "list").stderr


def test_an_event_reaches_those_whose_filter_it_matches(shop: User) -> None:
    shop.gets("subscribe", "order.placed", "work")
    shop.gets("subscribe", "order.placed", "other", "--filter", '{"country": "TR"}')
    assert shop.gets("publish", "order.placed", '{"order": 1}') == "1"
    words = ["--priority", "4", "--ordering-key", "k", "--header", "x-a=1", "--metadata", '{"m": 1}']
    assert shop.reads("publish", "order.placed", '{"order": 2, "country": "TR"}', *words) == {"messages": 2}
    newest = shop.reads("message", "peek", "other")[0]
    assert (newest["payload"]["order"], newest["priority"], newest["ordering_key"]) == (2, 4, "k")
    assert (newest["headers"], newest["metadata"]["m"]) == ({"x-a": "1"}, 1)


def test_subscriptions_are_listed_and_ended(shop: User) -> None:
    first = shop.gets("subscribe", "order.placed", "work")
    second = shop.gets("subscribe", "order.placed", "other", "--filter", '{"a": 1}')
    shop.gets("subscribe", "order.placed", "other", "--filter", '{"a": 2}')
    assert len(shop.reads("subscription", "list", "--event-type", "order.placed")) == 3
    listed = shop.reads("subscription", "list", "--endpoint", "other", "--limit", "1")
    assert [(one["id"], one["filter"]) for one in listed] == [(int(second), {"a": 1})]
    assert f"--after {second}" in shop.types("subscription", "list", "--limit", "1", "--after", first).stderr
    assert "Ended 1 subscription." in shop.types("unsubscribe", first).stderr
    assert "Ended 2 subscriptions." in shop.types("unsubscribe", "order.placed", "other").stderr
    assert shop.reads("subscription", "list") == []
    assert "menzil subscribe" in shop.types("subscription", "list").stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["publish", "order.placed", "{}"], "order"),
        (["publish", "order.placed", "nope"], "The body is not JSON"),
        (["publish", "order.lost", "{}"], "order.lost"),
        (["subscribe", "order.lost", "work"], "order.lost"),
        (["subscribe", "order.placed", "nobody"], "nobody"),
        (["subscribe", "order.placed", "work", "--filter", "[1]"], "The filter must be a JSON object."),
        (["unsubscribe", "999"], "There is no subscription 999."),
        (["unsubscribe", "order.placed"], "Which subscription?"),
        (["event-type", "drop", "order.lost"], "order.lost"),
        (["event-type", "create", "new", "--schema", '{"type": "nonsense"}'], "The schema is wrong"),
    ],
)  # fmt: skip
def test_what_cannot_be_published_is_one_sentence(shop: User, words: list[str], said: str) -> None:
    assert said in shop.fails(*words)
