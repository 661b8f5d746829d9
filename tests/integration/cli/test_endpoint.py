"""`menzil endpoint` as a user types it."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from menzil import Menzil
from tests.integration.cli.user import User
from tests.sql.clock import until

MARK = {"$secret": True}
OLD_SECRET = "whsec_" + "A" * 43 + "="


@pytest.fixture
def hook(user: User) -> str:
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/hook")
    return "hook"


def config(user: User, name: str = "hook") -> Any:
    return user.reads("endpoint", "show", name)["config"]


def test_a_made_endpoint_is_listed_with_its_url(user: User, hook: str) -> None:
    table = user.gets("endpoint", "list")
    assert table.splitlines()[0].split() == ["name", "protocol", "enabled", "paused", "circuit", "state", "url"]
    assert table.splitlines()[1].split() == ["hook", "http", "yes", "no", "closed", "https://example.com/hook"]
    (found,) = user.reads("endpoint", "list")
    keys = {"id", "name", "protocol", "enabled", "paused", "config", "retry_policy", "created_at", "updated_at"}
    assert found.keys() == keys | {"circuit_state", "circuit_failure_count", "next_probe_at"}


def test_a_change_keeps_the_credential_that_the_url_carries(user: User) -> None:
    url = "https://example.com/hook?env=prod&token=hunter2"
    user.gets("endpoint", "create", "token", "--url", url)
    user.gets("endpoint", "alter", "token", "--config", '{"timeout_seconds": 5}')
    shown = "https://example.com/hook?env=prod&token=***"
    assert config(user, "token") == {"url": shown, "timeout_seconds": 5}
    with psycopg.connect(user.dsn) as conn:
        stored = conn.execute("select secrets from menzil.endpoint_secret").fetchall()
    assert stored == [({"{url}": url},)]


def test_an_empty_list_says_what_would_fill_it(user: User) -> None:
    result = user.types("endpoint", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "menzil endpoint create" in result.stderr
    assert user.reads("endpoint", "list") == []


def test_a_long_list_says_how_to_go_on(user: User) -> None:
    for name in "abc":
        user.gets("endpoint", "create", name, "--url", "https://example.com/")
    first = user.types("endpoint", "list", "--limit", "2")
    assert "--after b" in first.stderr
    assert [one["name"] for one in user.reads("endpoint", "list", "--limit", "2", "--after", "b")] == ["c"]


def test_a_config_may_come_from_a_file_and_its_secrets_are_only_marks(user: User, tmp_path: Path) -> None:
    said = {"auth": {"type": "bearer", "token": "tip-top-secret"}, "timeout_seconds": 5, "max_concurrency": 3}
    (tmp_path / "config.json").write_text(json.dumps(said))
    words = ["--url", "https://example.com/", "--config", f"@{tmp_path}/config.json", "--header", "x-api-key=hush"]
    words += ["--retry-policy", '{"max_retries": 2}']
    user.gets("endpoint", "create", "billing", *words)
    shown = user.types("endpoint", "show", "billing")
    assert "tip-top-secret" not in shown.output
    assert "hush" not in shown.output
    found = user.reads("endpoint", "show", "billing")
    assert found["config"] == {
        "url": "https://example.com/",
        "timeout_seconds": 5,
        "auth": {"type": "bearer", "token": MARK},
        "headers": {"x-api-key": MARK},
    }
    assert found["limits"]["max_concurrency"] == 3
    assert found["retry_policy"] == {"max_retries": 2}


def test_alter_changes_what_was_said_and_keeps_the_rest(user: User) -> None:
    said = {
        "auth": {"type": "bearer", "token": "secret"},
        "timeout_seconds": 5,
        "rate_limit": {"count": 1, "interval_ms": 9},
    }
    words = ["--config", json.dumps(said), "--header", "x-a=1", "--retry-policy", '{"max_retries": 2}']
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/", *words)
    user.gets("endpoint", "alter", "hook", "--url", "https://example.com/v2", "--header", "x-b=2")
    kept = {"auth": {"type": "bearer", "token": MARK}, "timeout_seconds": 5, "headers": {"x-a": "1", "x-b": "2"}}
    assert config(user) == {"url": "https://example.com/v2", **kept}
    assert user.reads("endpoint", "show", "hook")["limits"]["release_interval_ms"] == 9

    away = {"timeout_seconds": None, "headers": {"x-a": None}, "rate_limit": None}
    user.gets("endpoint", "alter", "hook", "--config", json.dumps(away), "--retry-policy", "null")
    assert config(user) == {"url": "https://example.com/v2", "auth": kept["auth"], "headers": {"x-b": "2"}}
    found = user.reads("endpoint", "show", "hook")
    assert (found["limits"]["release_interval_ms"], found["retry_policy"]) == (0, None)


def test_enable_disable_pause_resume_and_drop_do_what_they_say(user: User, hook: str) -> None:
    user.gets("endpoint", "disable", hook)
    assert "is disabled and refuses messages" in user.fails("send", hook, "1")
    user.gets("endpoint", "enable", hook)
    user.gets("endpoint", "pause", hook)
    assert user.reads("endpoint", "show", hook)["paused"] is True
    user.gets("endpoint", "resume", hook)
    (found,) = user.reads("endpoint", "list")
    assert (found["enabled"], found["paused"]) == (True, False)
    sent = user.gets("send", hook, "1")
    assert "still has messages" in user.fails("endpoint", "drop", hook)
    user.gets("message", "cancel", sent)
    user.gets("endpoint", "drop", hook)
    assert user.reads("endpoint", "list") == []


def test_health_and_reset_speak_of_the_circuit(user: User, hook: str, mq: Menzil) -> None:
    user.gets("settings", "set", "circuit_breaker_threshold", "1")
    user.gets("send", hook, "1")
    (message,) = mq.dequeue(channels=hook)
    mq.fail(message, "HTTP 503 Service Unavailable")
    (found,) = user.reads("endpoint", "health", hook)
    assert (found["endpoint_name"], found["circuit_state"], found["pending_messages"]) == (hook, "open", 1)
    assert "open" in user.gets("endpoint", "health")
    user.gets("endpoint", "reset", hook)
    assert user.reads("endpoint", "health")[0]["circuit_state"] == "closed"


@pytest.mark.parametrize("signing", [None, {"secret": OLD_SECRET}, {"secrets": [OLD_SECRET]}])
def test_a_rotation_keeps_the_old_secret_until_it_is_finished(
    user: User, hook: str, mq: Menzil, signing: dict[str, Any] | None
) -> None:
    user.gets("endpoint", "alter", hook, "--config", json.dumps({"signing": signing}))
    new = user.gets("endpoint", "rotate", hook)
    assert new.startswith("whsec_")
    assert stored_secrets(user) == ([new] if signing is None else [new, OLD_SECRET])
    if signing is not None:
        lost, new = new, user.gets("endpoint", "rotate", hook)
        assert stored_secrets(user) == [new, lost, OLD_SECRET], "the way out for whoever lost the first one"
        for _ in range(2):
            new = user.gets("endpoint", "rotate", hook)
        assert "signs with 5 secrets already" in user.fails("endpoint", "rotate", hook)
        user.gets("endpoint", "rotate", hook, "--finish")
    assert stored_secrets(user) == [new]
    assert "No rotation" in user.fails("endpoint", "rotate", hook, "--finish")
    assert new not in user.types("endpoint", "show", hook).output


def stored_secrets(user: User) -> list[str]:
    with psycopg.connect(user.dsn) as conn:
        row = conn.execute("select config from menzil.delivery_configs(array['hook'])").fetchone()
    assert row is not None
    return row[0]["signing"]["secrets"]


def deliver(mq: Menzil, outcome: str) -> threading.Thread:
    """Somebody who serves the endpoint: takes the message when it comes."""

    def serve() -> None:
        (found,) = until(lambda: mq.dequeue(channels="hook"), 30)
        if outcome == "completed":
            mq.complete(found)
        else:
            mq.fail(found, "HTTP 400 Bad Request", permanent=True)

    thread = threading.Thread(target=serve)
    thread.start()
    return thread


@pytest.mark.parametrize(("outcome", "code"), [("completed", 0), ("failed", 1)])
def test_a_test_message_tells_how_it_ended(user: User, hook: str, mq: Menzil, outcome: str, code: int) -> None:
    serving = deliver(mq, outcome)
    result = user.types("endpoint", "test", hook, "--json")
    serving.join()
    found = json.loads(result.stdout)
    assert (result.exit_code, found["status"]) == (code, outcome)
    assert [attempt["outcome"] for attempt in found["attempts"]] == [outcome]

    serving = deliver(mq, outcome)
    result = user.types("endpoint", "test", hook, "--body", '{"hello": "there"}')
    serving.join()
    assert result.exit_code == code
    assert "attempt 1" in result.stdout.splitlines()[0]
    assert result.stdout.splitlines()[-1].endswith(outcome)


def test_secrets_leave_the_command_encrypted_when_there_is_a_key(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MENZIL_SECRET_KEY", "A" * 43 + "=")
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    new = user.gets("endpoint", "rotate", "hook")
    (stored,) = stored_secrets(user)
    assert "$encrypted" in stored
    assert new not in str(stored)


def test_a_test_that_nobody_delivers_gives_up_and_says_why(user: User, hook: str) -> None:
    user.gets("endpoint", "pause", hook)
    result = user.types("endpoint", "test", hook, "--timeout", "0")
    assert (result.exit_code, result.stdout.split()[1:]) == (1, ["pending"])
    assert "is paused" in result.stderr
    assert "does a worker run?" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "nobody"], "There is no endpoint named 'nobody'."),
        (["show", "work"], "work is a plain channel"),
        (["enable", "nobody"], "There is no endpoint named 'nobody'."),
        (["reset", "nobody"], "There is no endpoint named 'nobody'."),
        (["pause", "nobody"], "There is no channel or endpoint named 'nobody'."),
        (["health", "nobody"], "There is no endpoint named 'nobody'."),
        (["rotate", "nobody"], "There is no endpoint named 'nobody'."),
        (["test", "nobody"], "There is no endpoint named 'nobody'."),
        (["alter", "nobody", "--url", "https://example.com"], "There is no endpoint named 'nobody'."),
        (["alter", "hook"], "There is nothing to change."),
        (["create", "hook", "--url", "https://example.com"], "There is already a channel or endpoint named 'hook'."),
        (["create", "new"], "url"),
        (["create", "new", "--url", "ftp://example.com"], "url"),
        (["create", "new", "--url", "https://example.com", "--protocol", "pigeon"], "pigeon"),
        (["create", "new", "--url", "https://example.com", "--config", "{"], "The config is not JSON"),
        (["create", "new", "--url", "https://example.com", "--config", '{"tiemout_seconds": 1}'], "timeout_seconds"),
        (["create", "new", "--url", "https://example.com", "--retry-policy", '{"retries": 1}'], "retries"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_sentence(user: User, hook: str, words: list[str], said: str) -> None:
    assert said in user.fails("endpoint", *words)
    assert [one["name"] for one in user.reads("endpoint", "list")] == [hook]


def test_an_address_that_the_settings_close_is_told_at_once(user: User) -> None:
    said = user.types("endpoint", "create", "near", "--url", "http://127.0.0.1:9/hook")
    assert said.exit_code == 0
    assert said.stderr.splitlines()[-2:] == [
        "127.0.0.1 is a loopback address: deliveries there are refused until a setting allows them.",
        "hint: menzil settings set http_allow_internal_urls on",
    ]
    user.types("settings", "set", "http_allowed_networks", "127.0.0.0/8")
    assert user.types("endpoint", "create", "nearer", "--url", "http://localhost:9/hook").stderr == ""
