"""The overview, channels and curves: what they say is what the queue holds, and looking changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from menzil import Menzil
from menzil.cli.top.views import head
from menzil.model.errors import UnknownNameError, UsageError
from menzil.watch.channels import SORTS, channel, channels, turns
from menzil.watch.curves import STEPS, curve
from menzil.watch.frame import frame
from menzil.watch.overview import TILES, overview
from tests.integration.watch.conftest import Seat


def furnish(mq: Menzil) -> None:
    """Two that completed, one dead, one in flight, three that wait; and a channel that is paused."""
    mq.channel_set("held")
    mq.channel_pause("held")
    mq.send_batch("held", [{}] * 2)
    mq.send_batch("work", [{"n": n} for n in range(7)])
    mq.complete_many(mq.dequeue(2, channels="work", worker="w"))
    mq.fail(mq.dequeue(1, channels="work", worker="w")[0], "HTTP 500", permanent=True)
    mq.dequeue(1, 600, channels="work", worker="w")


def beat(dsn: str) -> None:
    """Let the jobs write the pulse down."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update menzil.job set next_at = '-infinity'")
        conn.execute("call menzil.run_jobs()")


def test_the_overview_counts_what_is_there(seat: Seat, mq: Menzil, watched_db: str) -> None:
    furnish(mq)
    beat(watched_db)
    found = overview(seat)
    assert (found["waiting"], found["in_flight"], found["dead"], found["workers_alive"]) == (5, 1, 1, 0)
    assert found["oldest_s"] > 0
    assert found["p95_ms"] > 0
    assert set(TILES) <= found.keys()
    assert [row["channel"] for row in found["worst_channels"]] == ["held", "work"]
    work = next(row for row in found["worst_channels"] if row["channel"] == "work")
    assert (work["waiting"], work["in_flight"], work["dead"]) == (3, 1, 1)
    assert "dead letters" in [finding["check"] for finding in found["findings"]]
    assert {len(spark) for spark in found["sparks"].values()} == {60}
    assert (sum(found["sparks"]["sent"] or []), sum(found["sparks"]["dead"] or [])) == (9, 1)


def test_an_empty_queue_has_nothing_to_tell(seat: Seat) -> None:
    found = overview(seat)
    assert (found["waiting"], found["dead"], found["p95_ms"], found["worst_channels"]) == (0, 0, None, [])
    assert set(found["rates"].values()) == {None}, "nothing has ever counted here"


def test_what_passes_after_counting_stopped_is_not_told_as_zero(seat: Seat, mq: Menzil, watched_db: str) -> None:
    furnish(mq)
    beat(watched_db)
    whole = overview(seat)
    assert whole["uncounted_since"] is None
    assert set(whole["rates"]) == {"sent", "completed", "failed_tries", "dead"}
    assert None not in whole["rates"].values()
    assert {point["sent"] is None for point in curve(seat)["points"]} == {False}
    with psycopg.connect(watched_db, autocommit=True) as conn:
        conn.execute("update menzil.job set last_run_at = last_run_at - interval '30 min' where name = 'pulse'")
        conn.execute("delete from menzil.pulse_minute")
        mq.send("work", {})
        for found in (overview(seat), frame(seat)):
            assert set(found["rates"].values()) == {None}
            assert set(found.get("sparks", {"dead": [None]})["dead"][-25:]) == {None}
            assert abs(found["uncounted_since"] - datetime.now(UTC) + timedelta(minutes=30)) < timedelta(minutes=5)
        assert {row["in_per_minute"] for row in channels(seat)["channels"]} == {None}
        minutes = channels(seat)["channels"][0]["spark"]
        assert (minutes[20], minutes[40:]) == (0, [None] * 20), "nothing was counted in the last half hour"
        drawn = curve(seat, "work")
        counted = [point["at"] for point in drawn["points"] if point["sent"] is not None]
        assert counted[-1] <= drawn["uncounted_since"] < counted[-1] + timedelta(minutes=1)
        assert len(counted) < len(drawn["points"]) - 20
        assert "not counted since" in head(frame(seat))[1]
        assert "sent -/min" in head(frame(seat))[0]
        conn.execute("update menzil.job set last_run_at = clock_timestamp() where name = 'pulse'")
    assert set(overview(seat)["rates"].values()) == {0}


def test_the_overview_does_not_ask_for_what_is_slow(seat: Seat, mq: Menzil) -> None:
    overview(seat)
    assert len(seat.asked) == 4
    assert not [text for text in seat.asked if "get_endpoint_health" in text or "dlq_causes" in text]


def test_channels_say_how_they_stand(seat: Seat, mq: Menzil, watched_db: str) -> None:
    furnish(mq)
    beat(watched_db)
    held, work = channels(seat)["channels"]
    assert (held["channel"], held["held_by"], held["waiting"]) == ("held", "paused", 2)
    assert held["state"].startswith("paused by ")
    assert (work["waiting"], work["in_flight"], work["dead"], work["held_by"]) == (3, 1, 1, None)
    assert work["failure_share"] == pytest.approx(1 / 3, abs=0.001)
    assert (len(work["spark"]), sum(work["spark"])) == (60, 2)
    assert [row["channel"] for row in channels(seat, held=True)["channels"]] == ["held"]
    assert [row["channel"] for row in channels(seat, contains="OR")["channels"]] == ["work"]


def test_channels_say_how_fast_they_go_and_when(seat: Seat, mq: Menzil, watched_db: str) -> None:
    """Of each minute the number stands at its place in the spark; a rate is of the last five full minutes."""
    mq.channel_set("work")
    with psycopg.connect(watched_db, autocommit=True) as conn:
        conn.execute(
            """insert into menzil.pulse_minute (channel_id, at, sent, completed, failed_tries)
               select c.id, date_trunc('minute', now(), 'UTC') - ago * interval '1 min', 10 * ago, ago, 1
                 from menzil.channel c, unnest(array[2, 30, 4, 58, 80]) ago where c.name = 'work'"""
        )
    (work,) = channels(seat)["channels"]
    later = work["spark"].index(58) - 1  # -1 where a minute began since the insert
    assert later in (-1, 0)
    assert {59 - place + later: one for place, one in enumerate(work["spark"]) if one} == {2: 2, 4: 4, 30: 30, 58: 58}
    assert work["out_per_minute"] == pytest.approx((2 + 4) / 5)
    assert work["in_per_minute"] == pytest.approx((20 + 40) / 5)
    assert work["failure_share"] == pytest.approx(4 / (4 + 94), abs=0.001)


def test_channels_go_on_by_name_and_sort_the_worst_first(seat: Seat, mq: Menzil) -> None:
    furnish(mq)
    first = channels(seat, limit=1)
    assert ([row["channel"] for row in first["channels"]], first["next_after"]) == (["held"], "held")
    second = channels(seat, limit=1, after="held")
    assert ([row["channel"] for row in second["channels"]], second["next_after"]) == (["work"], None)
    for sort in SORTS.keys() - {"name"}:
        assert channels(seat, sort=sort)["next_after"] is None
    assert [row["channel"] for row in channels(seat, sort="waiting")["channels"]] == ["work", "held"]
    assert channels(seat, sort="oldest")["channels"][0]["channel"] == "held"


def test_one_channel_shows_what_comes_next_and_who_holds_it(seat: Seat, mq: Menzil) -> None:
    furnish(mq)
    found = channel(seat, "work", upcoming=2)
    assert [one["id"] for one in found["next"]] == sorted(one["id"] for one in found["next"])
    assert len(found["next"]) == 2
    assert not {"payload", "content", "headers"} & found["next"][0].keys()
    assert [act["what"] for act in channel(seat, "held")["acts"]] == ["channel.paused", "channel.created"]
    assert (found["max_concurrency"], found["served_by"], found["blocked"]) == (None, [], [])
    with pytest.raises(UnknownNameError):
        channel(seat, "wrok")


def test_a_dead_letter_that_blocks_its_key_is_named(seat: Seat, mq: Menzil) -> None:
    mq.channel_set("strict", on_dead="block")
    mq.send("strict", {}, ordering_key="k")
    mq.fail(mq.dequeue(channels="strict")[0], "no", permanent=True)
    (blocked,) = channel(seat, "strict")["blocked"]
    assert (blocked["ordering_key"], blocked["last_error"]) == ("k", "[PERMANENT] no")


def test_the_oldest_message_is_told_though_it_has_an_ordering_key_and_no_worker_ran(seat: Seat, mq: Menzil) -> None:
    mq.send("work", {}, ordering_key="k")
    mq.send("work", {}, ordering_key="l")
    (row,) = channels(seat)["channels"]
    assert (row["waiting"], row["oldest_s"] is None) == (2, False)
    assert overview(seat)["worst_channels"][0]["oldest_s"] == pytest.approx(row["oldest_s"], abs=30)
    mq.complete(mq.dequeue(channels="work")[0])
    assert channels(seat)["channels"][0]["oldest_s"] < row["oldest_s"] + 30


def test_workers_that_serve_a_channel_are_named(seat: Seat, mq: Menzil, watched_db: str) -> None:
    with psycopg.connect(watched_db, autocommit=True) as conn:
        conn.execute("select menzil.worker_hello('w-1', 'here', 1, '1.0', array['work'])")
        conn.execute("select menzil.worker_hello('w-2', 'here', 2, '1.0', array['other', '(endpoints)'])")
        conn.execute("select menzil.worker_hello('w-3', 'here', 3, '1.0')")
        conn.execute("""select menzil.create_endpoint('hook', 'http', '{"url": "https://example.com/"}')""")
    for name, workers in (("work", ["w-1"]), ("hook", ["w-2", "w-3"])):
        found = channel(seat, name)
        assert sorted(one["worker"] for one in found["served_by"]) == workers
        assert found["workers"] == len(workers)


def test_turns_name_who_is_passed_over(seat: Seat, mq: Menzil) -> None:
    furnish(mq)
    found = turns(seat, 2)
    assert len(found["turns"]) == 2
    assert [one["channel"] for one in found["skipped"]] == ["held"]
    assert found["skipped"][0]["state"].startswith("paused")


def test_a_curve_has_a_point_for_every_step(seat: Seat, mq: Menzil, watched_db: str) -> None:
    furnish(mq)
    beat(watched_db)
    found = curve(seat)
    assert (len(found["points"]) in (60, 61), found["step_s"]) == (True, 60)
    assert sum(point["sent"] for point in found["points"]) == 9
    assert sum(point["completed"] for point in found["points"]) == 2
    assert [point["p95_ms"] is None for point in found["points"]].count(False) == 1
    assert {mark["what"] for mark in found["marks"]} >= {"channel.paused", "channel.created"}
    work = curve(seat, "work")
    assert sum(point["sent"] for point in work["points"]) == 7
    assert "channel.paused" not in {mark["what"] for mark in work["marks"]}


@pytest.mark.parametrize("hours", [0.5, 1, 6, 48, 24 * 30, 24 * 90])
def test_a_curve_has_few_points_that_begin_at_full_steps(seat: Seat, hours: float) -> None:
    found = curve(seat, since=timedelta(hours=hours), marked=False)
    assert 1 <= len(found["points"]) <= 121
    assert found["step_s"] in STEPS
    assert (found["step_s"] >= 3600) >= (hours > 48)
    for point in found["points"]:
        assert (point["at"] - datetime(2000, 1, 1, tzinfo=UTC)).total_seconds() % found["step_s"] == 0


def test_a_curve_refuses_what_makes_no_sense(seat: Seat) -> None:
    with pytest.raises(UsageError, match="one minute"):
        curve(seat, step=5)
    with pytest.raises(UsageError, match=r"10,000 points"):
        curve(seat, since=timedelta(days=90), step=60)
    with pytest.raises(UsageError, match=r"10,000 points"):
        curve(seat, since=datetime(1, 1, 1, tzinfo=UTC))
    with pytest.raises(UsageError, match="no length"):
        curve(seat, since=datetime(2999, 1, 1, tzinfo=UTC))
    with pytest.raises(UnknownNameError):
        curve(seat, "nobody")


def test_a_frame_has_the_numbers_and_the_channels(seat: Seat, mq: Menzil) -> None:
    furnish(mq)
    found = frame(seat, sort="waiting")
    assert (found["waiting"], found["channels"][0]["channel"]) == (5, "work")
    assert "spark" not in found["channels"][0]


def test_a_monitor_may_look_at_all_of_this(seat: Seat, mq: Menzil) -> None:
    furnish(mq)
    seat.conn.execute("set role menzil_monitor")
    overview(seat)
    channels(seat)
    turns(seat)
    curve(seat)
    frame(seat)


def test_channels_of_a_copy_stand_still_whatever_else_holds_them(seat: Seat, mq: Menzil, watched_db: str) -> None:
    furnish(mq)
    mq.channel_set("empty")
    with psycopg.connect(watched_db, autocommit=True) as conn:
        conn.execute("select menzil.disown()")
    states = {row["channel"]: row["state"] for row in channels(seat)["channels"]}
    assert states == {"empty": "idle", "held": "stands still, in a copy", "work": "stands still, in a copy"}
    assert channel(seat, "work")["state"] == "stands still, in a copy"
    assert {row["state"] for row in frame(seat)["channels"]} == {"idle", "stands still, in a copy"}
    ahead = turns(seat)
    assert ahead["turns"] == [], "no dequeue gets anything"
    assert [(row["channel"], row["state"]) for row in ahead["skipped"]] == [
        ("held", "stands still, in a copy"), ("work", "stands still, in a copy"),
    ]  # fmt: skip
    with psycopg.connect(watched_db, autocommit=True) as conn:
        conn.execute("select menzil.adopt()")
    assert channel(seat, "held")["state"].startswith("paused by ")
    assert len(turns(seat)["turns"]) == 3
