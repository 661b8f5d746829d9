"""Endpoints: their life from create to drop, secrets that nobody reads, retry policies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from menzil.install import migrate
from tests.sql.queue import Queue

URL = "https://example.com/hook"
MARK = {"$secret": True}
OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW = "whsec_" + "A" * 43 + "="


@pytest.fixture
def conn(db: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(db, autocommit=True) as connection:
        yield connection


def create(conn: psycopg.Connection, name: str = "hook", config: Any = None, protocol: str | None = "http") -> int:
    given = Jsonb({"url": URL} if config is None else config)
    (made,) = conn.execute("select menzil.create_endpoint(%s, %s, %s)", [name, protocol, given]).fetchone()
    return made


def alter(conn: psycopg.Connection, config: Any, name: str = "hook") -> None:
    conn.execute("select menzil.alter_endpoint(%s, %s)", [name, Jsonb(config)])


def config_of(conn: psycopg.Connection, name: str = "hook") -> Any:
    (config,) = conn.execute("select config from menzil.endpoints where name = %s", [name]).fetchone()
    return config


def with_secrets(conn: psycopg.Connection, name: str = "hook") -> Any:
    (config,) = conn.execute(
        "select menzil._endpoint_config(id) from menzil.endpoints where name = %s", [name]
    ).fetchone()
    return config


def limits(conn: psycopg.Connection) -> Any:
    return conn.execute(
        "select max_concurrency, release_count, release_interval_ms from menzil.channel where name = 'hook'"
    ).fetchone()


def events(conn: psycopg.Connection) -> list[str]:
    return [
        kind
        for (kind,) in conn.execute(
            "select event_type from menzil.event_log where event_type like 'endpoint.%' order by id"
        )
    ]


def test_an_endpoint_is_a_channel_with_a_destination(conn: psycopg.Connection) -> None:
    made = create(conn)
    row = conn.execute(
        "select id, name, protocol, config, retry_policy, enabled, paused from menzil.endpoints"
    ).fetchone()
    assert row == (made, "hook", "http", {"url": URL}, None, True, False)
    assert conn.execute("select menzil.send('hook', '{}')").fetchone()
    conn.execute("select menzil.channel_pause('hook')")
    assert conn.execute("select paused from menzil.endpoints").fetchone() == (True,)


def test_plain_channels_are_no_endpoints(conn: psycopg.Connection) -> None:
    conn.execute("select menzil.channel_set('plain')")
    assert conn.execute("select count(*) from menzil.endpoints").fetchone() == (0,)
    for query in [
        "select menzil.alter_endpoint('plain', '{}')",
        "select menzil.drop_endpoint('plain')",
        "select menzil.enable_endpoint('plain')",
        "select menzil.disable_endpoint('plain')",
    ]:
        with pytest.raises(psycopg.errors.UndefinedObject) as refusal:
            conn.execute(query)
        assert "plain channel" in refusal.value.diag.message_hint


def test_a_name_is_taken_once_by_endpoint_or_channel(conn: psycopg.Connection) -> None:
    create(conn)
    conn.execute("select menzil.channel_set('plain')")
    for name in ["hook", "plain"]:
        with pytest.raises(psycopg.errors.DuplicateObject):
            create(conn, name)
    assert config_of(conn) == {"url": URL}


def test_unknown_names_and_nulls_are_refused(conn: psycopg.Connection) -> None:
    calls = [
        "alter_endpoint(%s, '{}')",
        "drop_endpoint(%s)",
        "enable_endpoint(%s)",
        "disable_endpoint(%s)",
        "set_retry_policy(%s, '{}')",
    ]
    for call in calls:
        with pytest.raises(psycopg.errors.UndefinedObject):
            conn.execute(f"select menzil.{call}", ["nobody"])
        with pytest.raises(psycopg.errors.NullValueNotAllowed):
            conn.execute(f"select menzil.{call}", [None])
    for arguments in ["null, 'http', '{}'", "'a', null, '{}'", "'a', 'http', null"]:
        with pytest.raises(psycopg.errors.NullValueNotAllowed):
            conn.execute(f"select menzil.create_endpoint({arguments})")


def test_a_protocol_nobody_speaks_is_refused_with_the_list_of_known_ones(conn: psycopg.Connection) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="'pigeon'") as refusal:
        create(conn, protocol="pigeon")
    (known,) = conn.execute("select menzil.known_protocols()").fetchone()
    assert "http" in known
    assert ", ".join(known) in refusal.value.diag.message_hint


def test_disabling_refuses_sends_and_enabling_takes_them_again(conn: psycopg.Connection) -> None:
    create(conn)
    conn.execute("select menzil.disable_endpoint('hook'), menzil.disable_endpoint('hook')")
    assert conn.execute("select enabled from menzil.endpoints").fetchone() == (False,)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        conn.execute("select menzil.send('hook', '{}')")
    conn.execute("select menzil.enable_endpoint('hook'), menzil.enable_endpoint('hook')")
    conn.execute("select menzil.send('hook', '{}')")
    assert events(conn) == ["endpoint.created", "endpoint.disabled", "endpoint.enabled"]


def test_an_endpoint_with_messages_cannot_be_dropped(conn: psycopg.Connection) -> None:
    made = create(conn, config={"url": URL, "auth": {"type": "bearer", "token": "t"}})
    for send in [
        "select menzil.send('hook', '{}')",
        "select menzil.send_with_options('hook', '{}', p_scheduled_at => now() + interval '1 day')",
        "select menzil.send_with_options('hook', '{}', p_ordering_key => 'k')",
    ]:
        conn.execute(send)
        with pytest.raises(psycopg.errors.ObjectInUse) as refusal:
            conn.execute("select menzil.drop_endpoint('hook')")
        assert "purge_endpoint" in refusal.value.diag.message_hint
        conn.execute("select menzil.purge_endpoint('hook')")
    conn.execute("select menzil.drop_endpoint('hook')")
    assert conn.execute("select count(*) from menzil.endpoints").fetchone() == (0,)
    assert conn.execute("select count(*) from menzil.endpoint_secret").fetchone() == (0,)
    with pytest.raises(psycopg.errors.UndefinedObject):
        conn.execute("select menzil.send('hook', '{}')")
    assert create(conn) != made
    assert events(conn) == ["endpoint.created", "endpoint.dropped", "endpoint.created"]


def test_secrets_are_stored_apart_and_never_shown(conn: psycopg.Connection) -> None:
    given = {
        "url": URL,
        "auth": {"type": "basic", "username": "ann", "password": "pass-1"},
        "headers": {"X-Api-Key": "key-1", "Cookie": "cookie-1", "X-Tenant": "a.b"},
        "signing": {"secrets": [OLD, NEW]},
        "tls": {"cert": "-----BEGIN CERTIFICATE-----\nMII\n", "key": "-----BEGIN PRIVATE KEY-----\nkey-2\n"},
        "proxy": {"url": "http://proxy:3128", "username": "bob", "password": "pass-2"},
    }
    create(conn, config=given)
    shown = config_of(conn)
    assert shown["auth"] == {"type": "basic", "username": "ann", "password": MARK}
    assert shown["headers"] == {"X-Api-Key": MARK, "Cookie": MARK, "X-Tenant": "a.b"}
    assert shown["signing"] == {"secrets": [MARK, MARK]}
    assert (shown["tls"]["key"], shown["proxy"]["password"]) == (MARK, MARK)
    assert with_secrets(conn) == given
    alter(conn, {**shown, "method": "PUT"})
    logged = json.dumps(conn.execute("select old_value, new_value, metadata from menzil.event_log").fetchall())
    for secret in ["pass-1", "pass-2", "key-1", "key-2", "cookie-1", OLD, NEW]:
        assert secret not in logged
        assert secret not in json.dumps(shown)


def test_a_mark_sent_back_keeps_the_secret(conn: psycopg.Connection) -> None:
    create(conn, config={"url": URL, "auth": {"type": "bearer", "token": "t1"}, "headers": {"X-Token": "x"}})
    alter(conn, {**config_of(conn), "timeout_seconds": 5})
    assert with_secrets(conn) == {
        "url": URL,
        "auth": {"type": "bearer", "token": "t1"},
        "headers": {"X-Token": "x"},
        "timeout_seconds": 5,
    }
    alter(conn, {"url": URL, "auth": {"type": "bearer", "token": "t2"}})
    assert with_secrets(conn) == {"url": URL, "auth": {"type": "bearer", "token": "t2"}}
    alter(conn, {"url": URL})
    assert conn.execute("select count(*) from menzil.endpoint_secret").fetchone() == (0,)


def test_signing_secrets_rotate_without_knowing_the_old_one(conn: psycopg.Connection) -> None:
    create(conn, config={"url": URL, "signing": {"secrets": [OLD]}})
    alter(conn, {"url": URL, "signing": {"secrets": [NEW, MARK]}})
    assert with_secrets(conn)["signing"]["secrets"] == [NEW, OLD]
    alter(conn, {"url": URL, "signing": {"secrets": [MARK]}})
    assert with_secrets(conn)["signing"]["secrets"] == [NEW]


def test_a_mark_without_a_stored_secret_is_refused(conn: psycopg.Connection) -> None:
    marked = {"url": URL, "auth": {"type": "bearer", "token": MARK}}
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"auth\.token"):
        create(conn, config=marked)
    create(conn, config={"url": URL, "signing": {"secrets": [OLD]}})
    for wrong in [
        marked,
        {"url": URL, "signing": {"secrets": [MARK, MARK]}},
        {"url": URL, "headers": {"X-Tenant": MARK}},
    ]:
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            alter(conn, wrong)
    assert with_secrets(conn)["signing"]["secrets"] == [OLD]


def test_limits_of_a_config_are_limits_of_the_channel(conn: psycopg.Connection) -> None:
    create(conn, config={"url": URL, "rate_limit": {"count": 5, "interval_ms": 1000}, "max_concurrency": 3})
    assert limits(conn) == (3, 5, 1000)
    assert config_of(conn) == {"url": URL}
    alter(conn, {"url": URL + "/2"})
    assert limits(conn) == (3, 5, 1000)
    alter(conn, {"url": URL, "rate_limit": None, "max_concurrency": 7})
    assert limits(conn) == (7, 1, 0)
    conn.execute("select menzil.channel_set('hook', p_max_size => 9)")
    alter(conn, {"url": URL, "max_concurrency": 2})
    assert limits(conn) == (2, 1, 0)
    assert conn.execute("select max_size from menzil.channel").fetchone() == (9,)


def test_a_refused_change_changes_nothing(conn: psycopg.Connection) -> None:
    create(conn, config={"url": URL, "auth": {"type": "bearer", "token": "t1"}})
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        alter(conn, {"url": URL, "auth": {"type": "bearer", "token": "t2"}, "max_concurrency": 0})
    assert with_secrets(conn)["auth"]["token"] == "t1"
    assert limits(conn)[0] is None


def test_the_administrator_updates_retry_policies_in_the_view(conn: psycopg.Connection) -> None:
    create(conn)
    before = conn.execute("select updated_at from menzil.endpoints").fetchone()
    conn.execute("set role menzil_admin")
    conn.execute(
        'update menzil.endpoints set retry_policy = \'{"max_retries": 20, "backoff": "linear"}\' where name = \'hook\''
    )
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="'max_retrys'") as refusal:
        conn.execute("update menzil.endpoints set retry_policy = '{\"max_retrys\": 20}' where name = 'hook'")
    assert "Did you mean max_retries?" in refusal.value.diag.message_hint
    for column in ["config = '{}'", "name = 'x'", "enabled = false", "protocol = null"]:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(f"update menzil.endpoints set {column}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        conn.execute("select * from menzil.endpoint_secret")
    conn.execute("reset role")
    row = conn.execute("select retry_policy, updated_at from menzil.endpoints").fetchone()
    assert row[0] == {"max_retries": 20, "backoff": "linear"}
    assert row[1] > before[0]


def test_even_the_owner_cannot_write_a_bad_config_or_a_bare_secret(conn: psycopg.Connection) -> None:
    create(conn)
    bearer = {"type": "bearer", "token": "t"}
    for config in [{"url": "nowhere"}, {"url": URL, "auth": bearer}, {"url": URL + "?token=t"}]:
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            conn.execute("update menzil.channel set config = %s where name = 'hook'", [Jsonb(config)])
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute("insert into menzil.channel (name, protocol, config) values ('x', 'http', '{}')")


def test_an_update_of_enabled_in_the_view_disables_the_endpoint(conn: psycopg.Connection) -> None:
    create(conn)
    conn.execute("update menzil.endpoints set enabled = false, retry_policy = '{\"max_retries\": 1}'")
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        conn.execute("select menzil.send('hook', '1')")
    row = conn.execute("select retry_policy from menzil.endpoints").fetchone()
    assert row == ({"max_retries": 1},)
    events = "select count(*) from menzil.event_log where event_type = 'endpoint.disabled' and entity_id = 'hook'"
    assert conn.execute(events).fetchone() == (1,)
    conn.execute("update menzil.endpoints set enabled = true")
    conn.execute("select menzil.send('hook', '1')")


@pytest.mark.parametrize(
    ("write", "hint"),
    [
        ("update menzil.endpoints set name = 'other'", "create_endpoint"),
        ("update menzil.endpoints set config = '{}'", "alter_endpoint"),
        ("update menzil.endpoints set paused = true", "channel_pause"),
        ("update menzil.endpoints set circuit_state = 'open'", "reset_circuit_breaker"),
        ("insert into menzil.endpoints (name) values ('z')", "create_endpoint"),
        ("delete from menzil.endpoints", "drop_endpoint"),
        ("delete from menzil.event_log", "cleanup_event_log"),
        ("update menzil.jobs set every = '1 day'", "job_run"),
        ("update menzil.settings set value = '5'", "set_setting"),
        ("update menzil.channels set paused = true", "channel_pause"),
    ],
)
def test_even_the_owner_does_not_write_past_the_functions(conn: psycopg.Connection, write: str, hint: str) -> None:
    create(conn)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="for reading") as refusal:
        conn.execute(write)
    assert hint in refusal.value.diag.message_hint


def test_retry_policies_are_set_and_taken_back(conn: psycopg.Connection) -> None:
    create(conn)
    conn.execute("select menzil.channel_set('plain')")
    policy = {
        "max_retries": 0,
        "backoff": "fixed",
        "base_delay_seconds": 0.5,
        "max_delay_seconds": 600,
        "increment_seconds": 15,
        "jitter": 0.2,
    }
    for name in ["hook", "plain"]:
        conn.execute("select menzil.set_retry_policy(%s, %s)", [name, Jsonb(policy)])
        assert conn.execute("select retry_policy from menzil.channel where name = %s", [name]).fetchone() == (policy,)
        conn.execute("select menzil.set_retry_policy(%s, null)", [name])
        assert conn.execute("select retry_policy from menzil.channel where name = %s", [name]).fetchone() == (None,)
    changed = conn.execute(
        "select entity_type, entity_id from menzil.event_log where event_type = 'retry_policy.changed' order by id"
    )
    assert changed.fetchall() == [("endpoint", "hook")] * 2 + [("channel", "plain")] * 2


def test_bad_retry_policies_are_refused(conn: psycopg.Connection) -> None:
    create(conn)
    for policy in [
        [], "linear", None, {"max_retries": -1}, {"max_retries": 1001}, {"max_retries": 2.5}, {"max_retries": "3"},
        {"max_retries": None},
        {"backoff": "quadratic"}, {"backoff": None}, {"backoff": 1}, {"base_delay_seconds": -1},
        {"base_delay_seconds": "10"},
        {"max_delay_seconds": 86401}, {"increment_seconds": True}, {"jitter": 1.1}, {"jitter": "yes"},
        {"jitter": None}, {"retries": 3},
        {"Max_Retries": 3}, {"base_delay_seconds": 20, "max_delay_seconds": 10},
    ]:  # fmt: skip
        with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
            conn.execute("select menzil.set_retry_policy('hook', %s)", [Jsonb(policy)])
        assert refusal.value.diag.message_hint, policy


HOOK = "https://logic.example.com/x/invoke?api-version=2016&sig=hunter2&sp=%2Ftriggers"
SHOWN = "https://logic.example.com/x/invoke?api-version=2016&sig=***&sp=%2Ftriggers"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (HOOK, SHOWN),
        (URL + "?token=hunter2", URL + "?token=***"),
        (URL + "?a=1&API_KEY=hunter2&b=2", URL + "?a=1&API_KEY=***&b=2"),
        (URL + "?x-access-token=hunter2&code=hunter2", URL + "?x-access-token=***&code=***"),
        (URL + "?hunter2hunter2hunter2", URL + "?***"),
        (URL + "?env=prod&flag&token=", URL + "?env=prod&flag&token="),
        (URL + "/token=a", URL + "/token=a"),
    ],
)
def test_a_credential_in_the_query_of_a_url_is_hidden(conn: psycopg.Connection, url: str, shown: str) -> None:
    create(conn, config={"url": url})
    assert config_of(conn)["url"] == shown
    assert with_secrets(conn)["url"] == url
    alter(conn, {"url": shown, "timeout_seconds": 5})
    assert with_secrets(conn) == {"url": url, "timeout_seconds": 5}
    conn.execute("select menzil.drop_endpoint('hook')")
    told = conn.execute("select coalesce(string_agg(e::text, ' '), '') from menzil.event_log e").fetchone()
    assert "hunter2" not in told[0]


def test_the_urls_of_token_servers_and_proxies_are_hidden_alike(conn: psycopg.Connection) -> None:
    oauth = {"type": "oauth2", "token_url": URL + "?apikey=hunter2", "client_id": "i", "client_secret": "s"}
    create(conn, config={"url": URL, "auth": oauth, "proxy": {"url": "http://proxy:1/?key=hunter2"}})
    shown = config_of(conn)
    assert "hunter2" not in str(shown)
    alter(conn, shown)
    assert with_secrets(conn)["auth"] == oauth


def test_a_new_credential_in_a_url_is_a_changed_secret_and_a_hidden_one_needs_a_stored_one(
    conn: psycopg.Connection,
) -> None:
    create(conn, config={"url": HOOK})
    alter(conn, {"url": HOOK.replace("hunter2", "hunter3")})
    changed = conn.execute("select metadata ->> 'secrets_changed' from menzil.event_log order by id desc").fetchone()
    assert changed == ("true",)
    for change in (lambda: alter(conn, {"url": URL + "?sig=***"}), lambda: create(conn, "other", {"url": SHOWN})):
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="in place of a hidden value"):
            change()
    assert with_secrets(conn)["url"] == HOOK.replace("hunter2", "hunter3")


def test_the_view_shows_the_circuit_of_each_endpoint(queue: Queue) -> None:
    queue.call("set_setting", "circuit_breaker_threshold", "2")
    queue.call("create_endpoint", "hook", "http", {"url": URL})
    look = "select circuit_state, circuit_failure_count, next_probe_at is not null from menzil.endpoints"
    assert queue.one(look) == ("closed", 0, False)
    queue.send_batch("hook", 3)
    first, second = queue.dequeue(2)
    queue.fail(first, "HTTP 500")
    queue.fail(second, "HTTP 500")
    assert queue.dequeue(1) == []  # folds what was told
    assert queue.one(look) == ("open", 2, True)
    health = queue.rows("get_endpoint_health", "hook")[0]
    assert health.next_probe_at == queue.one("select next_probe_at from menzil.endpoints")
    queue.call("reset_circuit_breaker", "hook")
    assert queue.one(look) == ("closed", 0, False)


def test_an_endpoint_of_an_older_release_is_hidden_by_the_next_migrate(db: str, conn: psycopg.Connection) -> None:
    create(conn, config={"url": URL, "headers": {"X-Token": "t"}})
    with conn.transaction():
        conn.execute("set local session_replication_role = replica")  # no trigger: an older release stored it like this
        conn.execute("update menzil.channel set config = jsonb_set(config, '{url}', to_jsonb(%s::text))", [HOOK])
        conn.execute("update menzil.installed_code set checksum = 'older'")
    migrate(db)
    assert config_of(conn) == {"url": SHOWN, "headers": {"X-Token": MARK}}
    assert with_secrets(conn) == {"url": HOOK, "headers": {"X-Token": "t"}}


@pytest.mark.parametrize("role", ["menzil_admin", "menzil_worker", "menzil_monitor", "menzil_pipeline"])
def test_every_role_that_reads_endpoints_sees_all_of_it(queue: Queue, role: str) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": HOOK})
    queue.conn.execute(f"set role {role}")
    (row,) = queue.all("select * from menzil.endpoints")
    assert (row.config, row.circuit_state) == ({"url": SHOWN}, "closed")
