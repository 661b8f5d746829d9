"""`menzil doctor`, `menzil workers` and `menzil metrics` as a user types them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from menzil import Menzil
from tests.integration.cli.user import User


@pytest.fixture
def conn(user: User) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        yield conn


def findings(user: User, code: int) -> dict[str, dict[str, Any]]:
    """What is wrong, by check; with the exit code that goes with it."""
    result = user.types("doctor", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, found["ok"]) == (code, code == 0), result.stdout
    assert all(one.keys() == {"check", "level", "sentence", "repair"} for one in found["findings"])
    return {one["check"]: one for one in found["findings"] if one["level"] != "ok"}


def test_a_healthy_queue_has_nothing_to_fix(user: User) -> None:
    assert findings(user, 0) == {}
    told = user.gets("doctor").splitlines()
    assert len(told) > 8
    assert all(line.startswith("ok ") for line in told)


def test_dead_letters_circuits_and_blocked_keys_wait_for_a_decision(user: User, mq: Menzil) -> None:
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    user.gets("settings", "set", "circuit_breaker_threshold", "1")
    user.gets("channel", "set", "work", "--on-dead", "block")
    user.gets("send", "hook", "1")
    mq.fail(mq.dequeue(channels="hook")[0], "HTTP 503 Service Unavailable")
    user.gets("send", "work", "1", "--ordering-key", "k")
    mq.fail(mq.dequeue(channels="work")[0], "no", permanent=True)
    found = findings(user, 1)
    assert found.keys() == {"circuits", "dead letters", "ordering keys"}
    assert all(one["repair"] for one in found.values())
    result = user.types("doctor")
    assert result.exit_code == 1
    assert "→ " in result.stdout


def test_a_setting_redact_that_cannot_be_read_is_refused_or_found(user: User, conn: psycopg.Connection[Any]) -> None:
    assert "'$.a[' is not a JSON path" in user.fails("settings", "set", "redact", "password, $.a[")
    sent = user.gets("send", "work", '"hunter2"')
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute("select menzil.set_setting('redact', 'password, $.a[')")
    conn.execute(
        "insert into menzil.setting_word (name, value) values ('redact', 'password, $.a[')"
    )  # by hand, as owner
    assert "hunter2" not in user.gets("message", "show", sent, "--redact")
    found = findings(user, 1)
    assert "everything is hidden: '$.a[' is not a JSON path" in found["redaction"]["sentence"]
    user.gets("settings", "set", "redact", "default")
    assert findings(user, 0) == {}


def test_a_server_parameter_in_the_name_of_menzil_changes_nothing(user: User, conn: psycopg.Connection[Any]) -> None:
    database = conn.info.dbname
    conn.execute(f"alter database {database} set menzil.max_queue_size = '10'")
    conn.execute(f"alter role {conn.info.user} in database {database} set menzil.retry_base_delay = '1s'")
    try:
        told = [one for one in json.loads(user.types("doctor", "--json").stdout)["findings"] if one["level"] != "ok"]
        assert [(one["check"], one["repair"]) for one in told] == [
            (
                "parameters",
                "select menzil.set_setting('max_queue_size', …); "
                f"alter database {database} reset menzil.max_queue_size;",
            ),
            (
                "parameters",
                "select menzil.set_setting('retry_base_delay', …); "
                f"alter role {conn.info.user} in database {database} reset menzil.retry_base_delay;",
            ),
        ]
        for one in told:  # the repair is a statement that can be typed
            conn.execute(one["repair"].split("; ")[1])
        assert findings(user, 0) == {}
    finally:
        conn.execute(f"alter database {database} reset all")
        conn.execute(f"alter role {conn.info.user} in database {database} reset all")


def test_a_function_changed_by_hand_is_drift(user: User, conn: psycopg.Connection[Any]) -> None:
    columns = "name, description, schema, now() as created_at"
    conn.execute(f"create or replace view menzil.event_types as select {columns} from menzil.event_type")
    conn.execute("create function menzil.mine() returns int language sql as 'select 1'")
    try:
        result = user.types("doctor")
        assert result.exit_code == 1
        assert "View menzil.event_types was changed by hand." in result.stdout
        assert "menzil migrate --reapply" in result.stdout
        assert "menzil.mine() is not menzil's" in result.stdout
    finally:
        conn.execute("drop function menzil.mine()")
        user.gets("migrate", "--reapply")
    assert findings(user, 0) == {}


def test_a_broken_index_comes_with_its_repair(user: User, conn: psycopg.Connection[Any]) -> None:
    conn.execute("create index half_built on menzil.event (event_type)")
    conn.execute("update pg_index set indisvalid = false where indexrelid = 'menzil.half_built'::regclass")
    repair = findings(user, 1)["indexes"]["repair"]
    assert repair == "reindex index concurrently menzil.half_built;"
    conn.execute(repair)
    assert findings(user, 0) == {}
    conn.execute("drop index menzil.half_built")


def test_dead_rows_come_with_their_repair(user: User, conn: psycopg.Connection[Any], monkeypatch: Any) -> None:
    monkeypatch.setattr("menzil.watch.server.MANY_DEAD_ROWS", 100)
    conn.execute("alter table menzil.event set (autovacuum_enabled = off)")
    conn.execute("insert into menzil.event (event_type, entity_type) select 'x', 'x' from generate_series(1, 500)")
    conn.execute("delete from menzil.event")
    conn.execute("select pg_stat_force_next_flush()")
    result = user.types("doctor")
    assert result.exit_code == 1
    assert "Table event has " in result.stdout
    (repair,) = [line.split("→ ")[1] for line in result.stdout.splitlines() if "menzil.event;" in line]
    conn.execute(repair)
    conn.execute("select pg_stat_force_next_flush()")
    assert "Table event has " not in user.types("doctor").stdout
    conn.execute("alter table menzil.event reset (autovacuum_enabled)")


def test_a_month_that_hangs_nowhere_is_found(user: User, conn: psycopg.Connection[Any]) -> None:
    conn.execute("create table menzil.archive_2001_02 (like menzil.message including defaults)")
    found = findings(user, 1)["months"]
    conn.execute(found["repair"])
    assert findings(user, 0) == {}


def test_without_menzil_or_a_server_the_doctor_could_not_look(fresh_db: str) -> None:
    assert "menzil is not installed" in User(fresh_db).fails("doctor")
    assert User("postgresql://nobody@127.0.0.1:1/nothing").types("doctor").exit_code == 2


def test_who_may_not_look_everywhere_is_told_so(user: User, conn: psycopg.Connection[Any]) -> None:
    conn.execute("create role onlooker login password 'x' in role menzil_monitor")
    try:
        result = User(make_conninfo(user.dsn, user="onlooker", password="x")).types("doctor", "--json")
        found = {one["check"]: one["level"] for one in json.loads(result.stdout)["findings"]}
        assert result.exit_code == 2
        assert found["schema"] == "unknown"
        assert found["workers"] == "ok"
        conn.execute("revoke menzil_monitor from onlooker")
        conn.execute("grant menzil_application to onlooker")
        result = User(make_conninfo(user.dsn, user="onlooker", password="x")).types("doctor", "--json")
        (health,) = (one for one in json.loads(result.stdout)["findings"] if one["check"] == "health")
        assert health["repair"] == "let an administrator run: grant menzil_monitor to onlooker"
    finally:
        conn.execute("drop role onlooker")


def test_workers_are_listed_with_how_they_are(user: User, conn: psycopg.Connection[Any]) -> None:
    assert "menzil worker" in user.types("workers").stderr
    assert user.reads("workers") == []
    conn.execute("select menzil.worker_hello('w-1', 'here', 42, '0.1.0', array['work'], 8)")
    (found,) = user.reads("workers")
    assert (found["worker"], found["status"], found["channels"], found["pid"]) == ("w-1", "alive", ["work"], 42)
    conn.execute("update menzil.worker set heartbeat_at = heartbeat_at - interval '1 hour'")
    assert user.gets("workers").splitlines()[1].split()[:2] == ["w-1", "lost"]
    assert "w-1" in findings(user, 1)["workers"]["repair"]


def test_metrics_are_numbers_with_names(user: User) -> None:
    user.gets("send", "work", "1")
    found = user.reads("metrics")
    assert all(one.keys() == {"metric_name", "metric_value", "labels", "metric_type"} for one in found)
    depth = [one for one in found if (one["metric_name"], one["labels"]) == ("queue_depth", {"status": "pending"})]
    assert [one["metric_value"] for one in depth] == [1]
    assert "queue_depth_by_endpoint" in user.gets("metrics")
    assert "endpoint=work" in user.gets("metrics")
