"""A server that is changed under a worker at work: rights that go and come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo

from tests.acceptance.crew import Crew, until


@pytest.fixture
def role(crew: Crew) -> Iterator[str]:
    """A role of a worker."""
    name = f"hand_{crew.conn.info.dbname}"
    crew.conn.execute(f"create role {name} login password 'x' in role menzil_worker")
    yield name
    for process in crew.processes:
        process.kill()
    crew.conn.execute(f"drop owned by {name}")
    crew.conn.execute(f"drop role {name}")


@pytest.mark.parametrize("channel", ["wait", "no_use"])
def test_outcomes_wait_for_rights_that_are_granted_again(crew: Crew, role: str, channel: str) -> None:
    ids = crew.send(channel, "a", "b")
    dsn = make_conninfo(crew.dsn, user=role, password="x")
    worker = crew.start("--no-janitors", MENZIL_DSN=dsn)
    until(lambda: len(crew.traced(channel=channel)) == 2, "both to begin")
    crew.conn.execute(f"revoke menzil_worker from {role}")
    crew.gate.touch()
    line = worker.says("settle_failed")
    assert "permission denied" in line
    assert f"grant menzil_worker to {role}" in line
    crew.conn.execute(f"grant menzil_worker to {role}")
    dead = "select count(*) from menzil.dlq where original_message_id = any(%s)"
    until(lambda: crew.completed(channel) + crew.ask(dead, ids) == 2, "both to end")
    assert worker.stop() == 0
    assert [line[3] for line in crew.traced()] == ["1", "1"], "each was delivered once"
    assert not [line for line in worker.lines if "settle_refused" in line or "lease_lost" in line]


def test_trigger_that_denies_one_outcome_holds_no_other(crew: Crew) -> None:
    """Its error looks like a right that is missing for all."""
    ids = crew.send("together", *map(str, range(30)))
    crew.conn.execute(f"""
        create function deny() returns trigger language plpgsql as
          $$ begin raise insufficient_privilege using message = 'not this one'; end $$;
        create trigger deny before insert on menzil.done for each row
          when ({ids[7]} between new.lo_id and new.hi_id and (new.ids is null or {ids[7]} = any (new.ids)))
          execute function deny()""")
    worker = crew.start("--no-janitors", "--lease", "300")
    until(lambda: len(crew.traced()) == 30, "all to begin")
    crew.gate.touch()
    until(lambda: crew.completed("together") == 29, "the others to end")
    crew.send("together", *map(str, range(20)))
    until(lambda: crew.completed("together") == 49, "later ones to end")
    assert "not this one" in worker.says("settle_failed")
    crew.conn.execute("drop trigger deny on menzil.done")
    until(lambda: crew.completed("together") == 50, "what was denied to end when it is permitted")
    assert worker.stop() == 0
    assert [line[3] for line in crew.traced()] == ["1"] * 50, "each was delivered once"
    assert len([line for line in worker.lines if "settle_failed" in line]) == 1
    assert not [line for line in worker.lines if "settle_refused" in line or "lease_lost" in line]
