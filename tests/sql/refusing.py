"""What every refusal has: its documented SQLSTATE, one sentence, one hint, and nothing written."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from tests.sql.queue import Queue

_COUNTS = """
select string_agg(format('select %L, count(*) from menzil.%I', relname, relname), ' union all ' order by relname)
  from pg_class where relnamespace = 'menzil'::regnamespace and relkind in ('r', 'p') and not relispartition
"""

#: Why an endpoint takes no messages.
CLOSED = ("disabled", "released", "dropped")


def counts(queue: Queue) -> list[tuple[str, int]]:
    """How many rows every table has."""
    return sorted(queue.all(queue.one(_COUNTS)))  # the server may run the parts side by side


def refused(queue: Queue, state: str, function: str, *params: Any, **named: Any) -> str:
    """Call a function that must refuse, and return its sentence."""
    with pytest.raises(psycopg.Error) as error:
        queue.call(function, *params, **named)
    assert error.value.sqlstate == state
    assert error.value.diag.message_hint
    return str(error.value.diag.message_primary)


def refused_cleanly(queue: Queue, state: str, call: str) -> None:
    """Make a bad call and look at every word of the answer, and at every table."""
    before = counts(queue)
    with pytest.raises(psycopg.Error) as error:
        queue.all(f"select * from menzil.{call}")
    said = error.value.diag
    assert (said.sqlstate, said.message_primary) == (state, said.message_primary)
    assert said.message_primary
    assert "\n" not in said.message_primary
    assert len(said.message_primary) < 400
    assert said.message_primary[0].isupper() or said.message_primary[0] == "'"
    # The one sentence whose words were given from outside has no full stop.
    assert said.message_primary.endswith(".") or said.sqlstate == "23505"
    assert said.message_hint
    assert counts(queue) == before


def close(queue: Queue, endpoint: str, how: str) -> None:
    """Let an endpoint take no more messages, in one of the ways of CLOSED."""
    match how:
        case "disabled":
            queue.call("disable_endpoint", endpoint)
        case "released":
            queue.send(endpoint)
            queue.call("channel_release", endpoint)
        case "dropped":
            queue.call("drop_endpoint", endpoint)
