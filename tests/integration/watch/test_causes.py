"""Dead letters by cause, what was changed just before, who would get an event, and waits as the engine makes them."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from menzil import Menzil
from menzil.model.redact import Redactor
from menzil.ops import looking
from menzil.watch import dead, events, lake, schedules, settings
from menzil.watch.endpoints import circuit, endpoint, endpoints, waits
from tests.integration.watch.conftest import Seat


def die(mq: Menzil, channel: str, *errors: str) -> None:
    mq.send_batch(channel, [{"n": number} for number in range(len(errors))])
    for error, message in zip(errors, mq.dequeue(len(errors), 60, [channel]), strict=True):
        mq.fail(message, error, permanent=True)


def test_causes_are_counted_over_channels_the_most_frequent_first(seat: Seat, mq: Menzil) -> None:
    mq.channel_set("other")
    die(mq, "work", "HTTP 503 from a.example", "HTTP 503 from a.example", "ValueError: row 1", "ValueError: row 22")
    die(mq, "other", "ValueError: row 4")
    found = dead.causes(seat)
    whose = {one["cause_hash"]: sorted(of["endpoint_name"] for of in one["endpoints"]) for one in found["causes"]}
    assert [(one["failed_count"], whose[one["cause_hash"]]) for one in found["causes"]] == [
        (3, ["other", "work"]),
        (2, ["work"]),
    ]
    assert found["dead"] == 5
    assert [sum(one["spark"]) for one in found["causes"]] == [3, 2]
    assert [one["failed_count"] for one in dead.causes(seat, endpoint="other")["causes"]] == [1]


def test_causes_behind_the_most_frequent_ones_are_counted_and_found(
    seat: Seat, mq: Menzil, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("apple", "pear", "plum", "fig")
    die(mq, "work", *(word for place, word in enumerate(words) for _ in range(len(words) - place)))
    whole = dead.causes(seat)
    assert (whole["dead"], whole["cut"], len(whole["causes"])) == (10, False, 4)
    monkeypatch.setattr(dead.causes, "__kwdefaults__", {**dead.causes.__kwdefaults__, "most": 2})
    cut = dead.causes(seat)
    assert (cut["dead"], cut["cut"], len(cut["causes"])) == (10, True, 2)
    assert dead.causes(seat, endpoint="work")["dead"] == 10
    fig = dead.cause(seat, whole["causes"][3]["cause_hash"])
    assert (fig["failed_count"], fig["cause"], fig["at_least"]) == (1, whole["causes"][3]["cause"], False)
    monkeypatch.setattr(dead, "EVERY", 3)
    unseen = dead.cause(seat, fig["cause_hash"])
    assert (unseen["failed_count"], unseen["cause"], unseen["at_least"]) == (1, None, True)
    mq.redrive_message(unseen["letters"][0]["id"])
    gone = dead.cause(seat, fig["cause_hash"])
    assert (gone["failed_count"], gone["at_least"], len(gone["letters"])) == (0, False, 1)


def test_cause_names_the_change_just_before_it_and_not_its_own_effects(seat: Seat, mq: Menzil, watched_db: str) -> None:
    with psycopg.connect(watched_db) as conn:
        conn.execute("select set_config('menzil.actor', 'ada', true), set_config('menzil.via', 'cli', true)")
        conn.execute("select menzil.channel_set('work', p_max_concurrency => 3)")
    die(mq, "work", "boom")
    mq.redrive_message(seat(looking_letter())["id"])
    die(mq, "work", "boom")
    (found,) = dead.causes(seat)["causes"]
    changed = found["changed"]
    assert (changed["what"], changed["entity"], changed["actor"].split()[0]) == ("channel.changed", "work", "ada")
    assert 0 <= changed["before_s"] < 60


def looking_letter() -> Any:
    from menzil.ops import looking_dlq

    return looking_dlq.letter_of(1)


def test_change_of_another_channel_is_not_told_as_the_cause(seat: Seat, mq: Menzil, watched_db: str) -> None:
    with psycopg.connect(watched_db) as conn:
        conn.execute("delete from menzil.event")
        conn.execute("delete from menzil.worker")
        conn.execute("select menzil.channel_set('held', p_max_concurrency => 3)")
    die(mq, "work", "boom")
    assert [one["changed"] for one in dead.causes(seat)["causes"]] == [None]


def test_cause_without_any_change_before_it_says_none(seat: Seat, mq: Menzil, watched_db: str) -> None:
    with psycopg.connect(watched_db) as conn:
        conn.execute("delete from menzil.event")
        conn.execute("delete from menzil.worker")
    die(mq, "work", "boom")
    assert [one["changed"] for one in dead.causes(seat)["causes"]] == [None]


def test_letters_of_a_cause_go_on_where_they_ended_and_are_redacted(seat: Seat, mq: Menzil) -> None:
    die(mq, "work", *["HTTP 500 password=hunter2"] * 5)
    (one,) = dead.causes(seat)["causes"]
    by = Redactor(["password"])
    first = dead.cause(seat, one["cause_hash"], limit=3, redactor=by)
    rest = dead.cause(seat, one["cause_hash"], limit=3, before=first["next_before"], redactor=by)
    assert [len(first["letters"]), len(rest["letters"]), rest["next_before"]] == [3, 2, None]
    assert "hunter2" not in json.dumps([first, rest], default=str)


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ({"a": 1}, {}), ({"a": 1, "b": 2}, {"a": 1}), ({"a": 1}, {"a": 2}), ({"a": {"b": [1, 2]}}, {"a": {"b": [2]}}),
        ({"a": 1}, {"a": True}), ({"a": 1.0}, {"a": 1}), ({"a": None}, {"a": None}), ({}, {"a": None}),
        ([1, 2, 3], [3, 1]), ([1, [2]], [[2]]), ({"a": "x"}, {"a": ["x"]}), ({"a": ["x"]}, {"a": "x"}),
        ([{"a": 1, "b": 2}], [{"a": 1}]), ({"a": []}, {"a": []}), ({"a": [1]}, {"a": {}}), (["x"], "x"),
    ],
)  # fmt: skip
def test_tester_matches_as_the_database_does(seat: Seat, whole: Any, part: Any) -> None:
    row = seat.conn.execute("select %s::jsonb @> %s::jsonb", (json.dumps(whole), json.dumps(part))).fetchone()
    assert row == (events.contains(whole, part),)


def test_tester_says_who_would_get_what_a_publish_then_sends(seat: Seat, mq: Menzil) -> None:
    for name in ("every", "dutch", "closed"):
        mq.create_endpoint(name, "http", {"url": f"https://{name}.example/in"})
    mq.create_event_type("order.paid", schema={"type": "object", "required": ["order"]})
    mq.subscribe("order.paid", "every")
    mq.subscribe("order.paid", "dutch", filter={"country": "NL"})
    mq.subscribe("order.paid", "closed")
    mq.disable_endpoint("closed")
    for body, wanted in (({"order": 1}, ["every"]), ({"order": 1, "country": "NL"}, ["every", "dutch"])):
        told = events.tested(seat, "order.paid", body)
        assert told["valid"]
        assert [one["endpoint_name"] for one in told["subscriptions"] if one["matches"]] == wanted
        assert mq.publish("order.paid", body) == len(wanted)
    refused = events.tested(seat, "order.paid", {"country": "NL"})
    assert not refused["valid"]
    assert "order" in refused["fault"]


@pytest.mark.parametrize("policy", [None, {"backoff": "fixed"}, {"backoff": "linear", "max_delay_seconds": 90}])
def test_waits_that_are_told_are_those_of_the_engine(seat: Seat, policy: dict[str, Any] | None) -> None:
    rules = {one["name"]: one["value"] for one in seat(looking.settings())}
    for one in waits(policy, rules)["waits"]:
        row = seat.conn.execute(
            "select menzil._retry_delay(%s::jsonb, v, %s) from menzil.setting_value v",
            (json.dumps(policy), one["retry"] - 1),
        ).fetchone()
        assert row == (one["wait_s"],)


def test_endpoint_tells_its_tries_by_class(seat: Seat, mq: Menzil) -> None:
    mq.create_endpoint("hook", "http", {"url": "https://hook.example/in"})
    mq.send_batch("hook", [{"n": number} for number in range(4)])
    first, second, third, last = mq.dequeue(4, 60, ["hook"])
    mq.complete(first)
    mq.fail(second, "HTTP 503", permanent=True)
    mq.fail(third, "timed out")
    found = circuit(seat, "hook")
    assert sum(row["2xx"] for row in found["tries"]) == 1
    assert sum(row["no answer"] for row in found["tries"]) == 2
    assert found["bands"][-1]["state"] == "closed"
    assert endpoint(seat, "hook")["dead"] == 1
    (listed,) = endpoints(seat)["endpoints"]
    assert (listed["endpoint_name"], listed["dead"], listed["in_flight"]) == ("hook", 1, 1)
    mq.complete(last)


def test_schedule_tells_five_slots_on_the_clock_of_its_zone(seat: Seat, mq: Menzil) -> None:
    mq.schedule_create("nightly", "0 3 * * *", "work", {}, time_zone="Europe/Istanbul")
    (found,) = schedules.listed(seat)["schedules"]
    assert found["words"] == "at 03:00 every day"
    assert [one["there"][-5:] for one in found["slots"]] == ["03:00"] * 5
    assert found["slots"][0]["at"] == found["next_at"]
    assert not found["late"]


def test_slots_of_other_years_tell_their_year(seat: Seat, mq: Menzil) -> None:
    mq.schedule_create("leap", "0 0 29 2 *", "work", {})
    (found,) = schedules.listed(seat)["schedules"]
    assert len({one["there"] for one in found["slots"]}) == 5
    assert all(str(one["at"].year) in one["there"] for one in found["slots"][1:])


def test_settings_tell_their_range_and_what_was_changed(seat: Seat, mq: Menzil) -> None:
    mq.set_setting("retry_base_delay", 20)
    found = settings.one(seat, "retry_base_delay")
    assert found is not None
    assert (found["value"], found["changed"], found["range"]) == ("20", True, "1 to 3,600 seconds")
    assert settings.one(seat, "nonsense") is None
    mq.set_setting("retry_base_delay", "default")


def test_lake_tells_months_and_runs(seat: Seat, watched_db: str) -> None:
    with psycopg.connect(watched_db) as conn:
        conn.execute("select menzil.pipeline_run_begin('export', '/lake')")
    found = lake.lake(seat)
    assert [one["kind"] for one in found["runs"]] == ["export"]
    assert lake.months(seat)[-1]["open"]
