"""/metrics of the console: off, for this machine, or behind its own token."""

from __future__ import annotations

import hashlib

import pytest

from menzil.console import Access, Console
from menzil.console.tokens import make
from menzil.model.errors import UsageError
from tests.console.conftest import Full
from tests.console.seat import served

TOKEN = "a token for prometheus"
DIGEST = hashlib.sha256(TOKEN.encode()).hexdigest()


def test_metrics_are_off_unless_asked_for(full: Full) -> None:
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser:
        assert browser.get("/metrics").status == 404


def test_metrics_have_a_token_of_their_own(full: Full) -> None:
    token, line = make("ada", "admin")
    with served(Console(full.dsn, tokens=[line], metrics_token=DIGEST)) as browser:
        assert browser.get("/metrics").status == 401
        assert browser.get("/metrics", Authorization=f"Bearer {token}").status == 401, "not the one of a person"
        answer = browser.get("/metrics", Authorization=f"Bearer {TOKEN}")
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert "menzil_up 1.0" in answer.text
        assert 'menzil_messages_waiting{channel="billing"} 687.0' in answer.text
        assert browser.get("/workers", Authorization=f"Bearer {TOKEN}").status != 200, "and it opens nothing else"
        statuses = [browser.get("/metrics", Authorization="Bearer wrong").status for _ in range(6)]
        assert statuses[-1] == 429


def test_metrics_are_open_to_this_machine_where_the_console_is(full: Full) -> None:
    with served(Console(full.dsn, local=Access.admin("ada"), metrics_open=True)) as browser:
        assert "menzil_up 1.0" in browser.get("/metrics").text
        assert browser.get("/metrics", Host="evil.example").status == 400
        assert browser.get("/metrics", X_Forwarded_For="192.0.2.1").status == 404, "not to others through a proxy"


def test_token_in_place_of_its_digest_is_refused_and_not_repeated(full: Full) -> None:
    with pytest.raises(UsageError) as refused:
        Console(full.dsn, metrics_token="my-secret-token")
    assert "my-secret-token" not in str(refused.value)
