"""Workers whose role has another isolation level by default than READ COMMITTED."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from tests.acceptance.crew import Crew, until
from tests.acceptance.receiver import receiver


@pytest.fixture(params=["repeatable read", "serializable"])
def level(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def strict(crew: Crew, level: str) -> Iterator[str]:
    """The DSN of a worker's role with this isolation level by default."""
    crew.conn.execute("drop role if exists pedant")
    crew.conn.execute("create role pedant login password 'horse' in role menzil_worker")
    crew.conn.execute(f"alter role pedant set default_transaction_isolation = '{level}'")
    yield make_conninfo(crew.dsn, user="pedant", password="horse")
    crew.conn.execute("drop owned by pedant")
    crew.conn.execute("drop role pedant")


def test_everything_is_delivered_exactly_once(crew: Crew, strict: str) -> None:
    plain = crew.send("quick", *range(300))
    mixed = crew.send("mixed", *["done", "fail", "defer"] * 30)
    crew.ask("select menzil.set_setting('http_allow_internal_urls', 'on')")
    with receiver() as hook:
        crew.ask("select menzil.create_endpoint('hook', 'http', %s::jsonb)", json.dumps({"url": hook.url}))
        for word in range(50):
            crew.ask("select menzil.send('hook', to_jsonb(%s::text))", str(word))
        workers = [crew.start(app=app, MENZIL_DSN=strict) for app in ("apps:app", "apps:app", None)]
        until(lambda: crew.completed("quick") == len(plain), "the plain ones")
        until(lambda: crew.completed("mixed") == len(mixed), "second tries")
        until(lambda: crew.completed("hook") == 50, "the endpoint")
        assert sorted(map(json.loads, hook.bodies), key=int) == [str(word) for word in range(50)]
    assert [worker.stop() for worker in workers] == [0, 0, 0]
    handled = Counter(int(line[2]) for line in crew.traced(channel="quick"))
    assert handled == Counter(plain)
    assert crew.ask("select count(*) from menzil.queue") == 0
    assert crew.ask("select count(*) from menzil.jobs where last_error is not null") == 0
    assert crew.ask("select count(*) from menzil.jobs where last_count is null") == 0
    said = [line for worker in workers for line in worker.lines if "WARNING" in line or "ERROR" in line]
    assert [line for line in said if " failed channel=mixed " not in line] == []
    assert all("lost=0" in worker.says("stopped") for worker in workers)


def test_a_handler_with_a_transaction_has_its_effect_once(crew: Crew, strict: str, level: str) -> None:
    crew.conn.execute("create table effect (id bigint)")
    crew.conn.execute("grant select, insert on effect to pedant")
    ids = crew.send("ledger", *range(60)) + crew.send("ledger_in_a_thread", *range(60))
    workers = [crew.start(MENZIL_DSN=strict) for _ in range(2)]
    until(lambda: crew.completed("ledger") + crew.completed("ledger_in_a_thread") == len(ids), "all written", 60)
    assert crew.ask("select array_agg(id order by id) from effect") == sorted(ids)
    assert [worker.stop() for worker in workers] == [0, 0]
    # Each message has a lease of its own, so no settle meets another one. The reads of SERIALIZABLE do meet.
    if level == "repeatable read":
        assert Counter(int(line[2]) for line in crew.traced()) == Counter(ids)


def test_level_that_changes_while_a_worker_runs_does_not_stop_it(crew: Crew, strict: str, level: str) -> None:
    crew.conn.execute("alter role pedant reset default_transaction_isolation")
    worker = crew.start(MENZIL_DSN=strict)
    crew.send("quick", 1)
    until(lambda: crew.completed("quick") == 1, "the first one")
    crew.conn.execute(f"alter role pedant set default_transaction_isolation = '{level}'")
    crew.ask("select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'pedant'")
    crew.send("quick", *range(50))
    until(lambda: crew.completed("quick") == 51, "those after the change")
    assert worker.stop() == 0
