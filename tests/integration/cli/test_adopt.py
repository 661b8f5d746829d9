"""`menzil adopt` as a user types it, beside a database that was restored."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from menzil import CopyError, Menzil
from tests.integration.cli.user import User


@pytest.fixture
def staging(user: User) -> Iterator[User]:
    """A database whose home is another one, with a message, an endpoint and a schedule."""
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    user.gets("send", "hook", "1")
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select menzil.schedule_create('tick', '0 3 * * *', 'UTC', 'work', '{}')")
        conn.execute("update menzil.home set database_oid = 1, database_name = 'shop'")
        yield user
        conn.execute("select menzil.adopt()")


def test_a_copy_is_shown_before_it_goes_live(staging: User) -> None:
    result = staging.types("adopt")
    assert "is a copy of database shop" in result.stderr
    assert "It goes live, with 1 message, 1 endpoint and 1 schedule." in result.stderr
    assert "Nothing was changed. Add --yes to do it." in result.stderr
    with Menzil(staging.dsn) as mq:
        with pytest.raises(CopyError, match="is a copy of database shop") as refused:
            mq.dequeue()
        assert "menzil adopt" in (refused.value.hint or "")
        assert staging.gets("adopt", "--yes") == "live"
        assert len(mq.dequeue(channels="hook")) == 1


def test_a_database_that_is_live_has_nothing_to_adopt(user: User) -> None:
    result = user.types("adopt")
    assert (result.exit_code, result.stdout) == (0, "live\n")
    assert "is live already" in result.stderr


def test_a_copy_of_the_whole_server_is_told_to_stand_still(user: User) -> None:
    user.gets("send", "work", "1")
    plan = json.loads(user.types("adopt", "--undo", "--json").stdout)
    assert plan == {"plan": {"copy": False, "messages": 1, "endpoints": 0, "schedules": 0, "bridges": 0}, "done": None}
    assert user.gets("adopt", "--undo", "--yes") == "copy"
    try:
        result = user.types("doctor", "--json")
        found = {one["check"]: one for one in json.loads(result.stdout)["findings"]}
        assert result.exit_code == 1
        assert "was disowned" in found["copy"]["sentence"]
        assert found["copy"]["repair"].startswith("menzil adopt")
        assert user.gets("adopt", "--undo") == "copy"
    finally:
        assert user.gets("adopt", "--yes") == "live"


def test_only_an_administrator_adopts(user: User) -> None:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("set role menzil_worker")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("select menzil.adopt()")
