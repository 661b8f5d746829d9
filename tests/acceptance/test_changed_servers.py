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
