"""The console of a test's database: what was sent is seen at once, and a role sees and does what it may."""

from __future__ import annotations

from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest

import menzil
from menzil.testing.console import ServedConsole, served_console


@pytest.fixture
def console(shared: str):
    with served_console(shared) as made:
        yield made


def test_a_message_that_was_just_sent_is_on_the_next_page(client: menzil.Menzil, console: ServedConsole) -> None:
    client.channel_set("parcels")
    for count in (1, 2, 3):
        client.send("parcels", {"order": count})
        assert len(console.json("/messages.json?q=channel:parcels")["messages"]) == count
    with urlopen(console.url, timeout=60) as page:
        assert b"parcels" in page.read()


def test_a_role_is_changed_between_two_requests(client: menzil.Menzil, console: ServedConsole) -> None:
    client.channel_set("bills")
    sent = client.send("bills", {"order": 4711})
    console.role = "admin"
    assert "4711" in str(console.json(f"/messages/{sent}.json"))
    console.role = "viewer"
    assert "4711" not in str(console.json(f"/messages/{sent}.json"))


def test_a_program_sends_with_the_token(client: menzil.Menzil, console: ServedConsole) -> None:
    client.channel_set("mails")
    form = urlencode({"channel": "mails", "payload": '{"order": 42}'}).encode()
    answer = Request(f"{console.url}acts/send.json", form, {"Authorization": f"Bearer {console.token}"})
    with urlopen(answer, timeout=60) as said:
        assert said.status == 200
    assert len(console.json("/messages.json?q=channel:mails")["messages"]) == 1
    with pytest.raises(HTTPError) as refused, urlopen(Request(f"{console.url}acts/send.json", form), timeout=60):
        pass
    assert refused.value.code == 401


def test_a_path_without_json_is_refused_with_a_hint(console: ServedConsole) -> None:
    with pytest.raises(menzil.UsageError, match=r"not the JSON"):
        console.json("/messages")
    with pytest.raises(AssertionError, match="404"):
        console.json("/message-list.json")
