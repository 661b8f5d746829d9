"""What a plan is about: every filter that is refused says why, and nothing is written."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.dying import die
from tests.sql.planning import draft, plan
from tests.sql.queue import Queue
from tests.sql.refusing import CLOSED, close, counts

KINDS = ("redrive", "replay", "cancel")


def refusal(queue: Queue, kind: Any, where: Any, **named: Any) -> tuple[str, str, str]:
    """Code, sentence and hint; and nothing is written."""
    before = counts(queue)
    with pytest.raises(psycopg.Error) as caught:
        queue.call("plan_create", kind, None if where is None else Jsonb(where), **named)
    assert counts(queue) == before
    said = caught.value.diag
    assert said.message_primary
    assert said.message_hint
    return str(said.sqlstate), said.message_primary, said.message_hint


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("where", [{}, {"channel": None}, {"since": None, "ids": None}])
def test_an_empty_filter_is_refused(queue: Queue, kind: str, where: dict[str, Any]) -> None:
    code, sentence, hint = refusal(queue, kind, where)
    assert (code, sentence) == ("22023", "The filter of the plan is empty.")
    assert ("all" in hint) == (kind != "replay")


@pytest.mark.parametrize("kind", KINDS)
def test_a_filter_of_times_alone_is_refused_because_it_means_every_channel(queue: Queue, kind: str) -> None:
    code, sentence, _ = refusal(queue, kind, {"since": "2026-01-01"})
    assert (code, sentence) == ("22023", "The filter does not say of which channel.")


@pytest.mark.parametrize(
    ("kind", "key", "near"),
    [
        ("redrive", "chanel", "channel"),
        ("redrive", "cause_hsh", "cause_hash"),
        ("replay", "sinse", "since"),
        ("replay", "statuses", "status"),
        ("cancel", "endpont", "endpoint"),
        ("cancel", "untill", "until"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_one(queue: Queue, kind: str, key: str, near: str) -> None:
    code, sentence, hint = refusal(queue, kind, {"channel": "work", key: "x"})
    assert (code, sentence) == ("22023", f"The filter of a {kind} has no key '{key}'.")
    assert hint.startswith(f"Did you mean {near}? Use ")


@pytest.mark.parametrize(
    ("kind", "key"), [("replay", "all"), ("replay", "cause_hash"), ("redrive", "status"), ("cancel", "status")]
)
def test_a_key_of_another_kind_is_refused(queue: Queue, kind: str, key: str) -> None:
    code, sentence, _ = refusal(queue, kind, {"channel": "work", key: None})
    assert (code, sentence) == ("22023", f"The filter of a {kind} has no key '{key}'.")


def test_an_unknown_kind_is_refused_with_the_nearest_one(queue: Queue) -> None:
    code, sentence, hint = refusal(queue, "redrve", {"channel": "work"})
    assert (code, sentence) == ("22023", "'redrve' is not a kind of plan.")
    assert hint == "Did you mean redrive? Use redrive, replay or cancel."


@pytest.mark.parametrize(
    "where",
    [
        [],
        "work",
        7,
        {"channel": 7},
        {"channel": ["work"]},
        {"channel": "work", "endpoint": "work"},
        {"channel": "work", "all": True},
        {"all": False},
        {"all": "true"},
        {"all": 1},
        {"ids": [1], "channel": "work"},
        {"ids": []},
        {"ids": 1},
        {"ids": ["1"]},
        {"ids": [1.5]},
        {"ids": [0]},
        {"ids": [-1]},
        {"ids": [None]},
        {"ids": [2**63]},
        {"ids": [10**40]},
        {"ids": list(range(1, 10_002))},
        {"channel": "work", "since": "soon"},
        {"channel": "work", "since": 1},
        {"channel": "work", "since": "infinity"},
        {"channel": "work", "until": "-infinity"},
        {"channel": "work", "since": "2026-02-30"},
        {"channel": "work", "since": "2026-01-02", "until": "2026-01-01"},
        {"channel": "work", "since": "2026-01-01T00:00Z", "until": "2026-01-01T01:00+01"},
        {"cause_hash": "xyz"},
        {"cause_hash": "ABCDEF012345"},
        {"cause_hash": 123456789012},
    ],
)
def test_a_value_that_makes_no_sense_is_refused(queue: Queue, where: Any) -> None:
    assert refusal(queue, "redrive", where)[0] == "22023"


def test_a_misspelled_status_is_refused_with_the_nearest_one(queue: Queue) -> None:
    code, sentence, hint = refusal(queue, "replay", {"channel": "work", "status": "complete"})
    assert (code, sentence) == ("22023", "'complete' is not a status of the archive.")
    assert hint.startswith("Did you mean completed?")


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_channel_is_refused_with_the_nearest_one(queue: Queue, kind: str) -> None:
    code, sentence, hint = refusal(queue, kind, {"channel": "wrok"})
    assert (code, sentence) == ("42704", "There is no channel or endpoint named 'wrok'.")
    assert "work" in refusal(queue, kind, {"channel": "works"})[2]
    assert hint


@pytest.mark.parametrize("kind", ["redrive", "replay"])
@pytest.mark.parametrize("how", CLOSED)
def test_a_channel_that_takes_no_messages_is_refused(queue: Queue, kind: str, how: str) -> None:
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    die(queue, "hook")
    close(queue, "hook", how)
    assert refusal(queue, kind, {"channel": "hook"})[0] == "55000"


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), 1_000_001])
def test_a_rate_that_is_none_is_refused(queue: Queue, rate: float) -> None:
    assert refusal(queue, "replay", {"channel": "work"}, p_rate=rate)[0] == "22023"


def test_a_rate_that_would_take_years_is_refused(queue: Queue) -> None:
    die(queue)
    for rate in (1e-9, 1e-310):
        assert refusal(queue, "redrive", {"channel": "work"}, p_rate=rate)[1].startswith("At that rate 1 messages")


def test_a_cancel_has_no_rate(queue: Queue) -> None:
    assert refusal(queue, "cancel", {"channel": "work"}, p_rate=1)[1] == "A cancel has no rate."


def test_nulls_and_endless_texts_are_refused(queue: Queue) -> None:
    assert refusal(queue, None, {"channel": "work"})[0] == "22004"
    assert refusal(queue, "replay", None)[0] == "22004"
    assert refusal(queue, "replay", {"channel": "work"}, p_note="x" * 1001)[0] == "22023"
    assert refusal(queue, "replay", {"channel": "work"}, p_key="")[0] == "22023"
    assert refusal(queue, "replay", {"channel": "work"}, p_key="x" * 1025)[0] == "22023"


def test_a_filter_is_kept_in_one_spelling(queue: Queue) -> None:
    queue.conn.execute("set timezone = 'Europe/Istanbul'; set datestyle = 'German'")
    one = draft(queue, "redrive", endpoint="work", since="2026-01-01T03:00+03", until="2026-06-01")
    queue.conn.execute("reset datestyle")
    assert plan(queue, one).filter == {
        "channel": "work",
        "since": "2026-01-01T00:00:00.000000Z",
        "until": "2026-06-01T00:00:00.000000Z",
    }
    assert plan(queue, draft(queue, "replay", ids=[3, 1, 3, 2])).filter == {"ids": [1, 2, 3]}
    assert plan(queue, draft(queue, "redrive", all=True, since=None)).filter == {"all": True}


def test_the_same_form_makes_one_plan_however_often_it_is_sent(queue: Queue) -> None:
    first = draft(queue, "redrive", 5, key="form", channel="work")
    assert draft(queue, "redrive", 5, key="form", channel="work") == first
    assert draft(queue, "redrive", 5, key="form", endpoint="work") == first
    assert draft(queue, "redrive", 5, key="other", channel="work") != first
    queue.call("plan_run", first)
    assert draft(queue, "redrive", 5, key="form", channel="work") == first
    assert queue.one("select count(*) from menzil.plans") == 2


@pytest.mark.parametrize(
    ("kind", "where", "rate"),
    [("replay", {"channel": "work"}, 5), ("redrive", {"all": True}, 5), ("redrive", {"channel": "work"}, None)],
)
def test_a_form_that_says_something_else_is_refused(queue: Queue, kind: str, where: Any, rate: float | None) -> None:
    first = draft(queue, "redrive", 5, key="form", channel="work")
    code, sentence, _ = refusal(queue, kind, where, p_rate=rate, p_key="form")
    assert (code, f"plan {first}" in sentence) == ("23505", True)
