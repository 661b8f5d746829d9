"""`menzil dlq`, `menzil replay` and `menzil archive` as a user types them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from menzil import Menzil
from tests.integration.cli.user import User


def kill(user: User, mq: Menzil, channel: str, errors: list[str]) -> None:
    """Dead letters, one for each error."""
    for error in errors:
        user.gets("send", channel, '{"order": 42}', "--header", "x-a=1")
        (message,) = mq.dequeue(channels=channel, worker="w-1")
        mq.fail(message, error, permanent=True)


@pytest.fixture
def dead(user: User, mq: Menzil) -> list[int]:
    """Two dead letters of one cause and one of another, in two channels; their ids, oldest first."""
    user.gets("channel", "set", "other")
    kill(user, mq, "work", ["HTTP 404 Not Found", "HTTP 500 Boom"])
    kill(user, mq, "other", ["HTTP 404 Not Found"])
    return sorted(one["id"] for one in user.reads("dlq", "list"))


def pending(user: User, channel: str) -> int:
    return user.reads("channel", "show", channel)["pending"]


# --- dead letters -----------------------------------------------------------------------------------------------------


def test_without_dead_letters_there_is_nothing_to_list(user: User) -> None:
    for words in (["summary"], ["list"], ["causes"]):
        result = user.types("dlq", *words)
        assert (result.exit_code, result.stdout) == (0, "")
        assert user.reads("dlq", *words) == []


def test_dead_letters_are_counted_by_endpoint_and_cause(user: User, dead: list[int]) -> None:
    counts = {one["endpoint_name"]: one["failed_count"] for one in user.reads("dlq", "summary")}
    assert counts == {"work": 2, "other": 1}
    assert "work" in user.gets("dlq", "summary")
    causes = user.reads("dlq", "causes", "--endpoint", "work")
    assert {one["cause"] for one in causes} == {"HTTP 404 Not Found", "HTTP 500 Boom"}
    assert len(user.gets("dlq", "causes").splitlines()) == 4


def test_dead_letters_are_listed_newest_first_page_by_page(user: User, dead: list[int]) -> None:
    assert [one["id"] for one in user.reads("dlq", "list", "--limit", "2")] == dead[:0:-1]
    assert f"--before {dead[1]}" in user.types("dlq", "list", "--limit", "2").stderr
    assert [one["id"] for one in user.reads("dlq", "list", "--before", str(dead[1]))] == dead[:1]
    assert [one["id"] for one in user.reads("dlq", "list", "--endpoint", "other")] == dead[2:]
    assert user.reads("dlq", "list", "--status", "redriven") == []


def test_a_dead_letter_shows_its_body_and_every_attempt(user: User, dead: list[int]) -> None:
    found = user.reads("dlq", "show", str(dead[0]))
    assert (found["payload"], found["headers"], found["endpoint_name"]) == ({"order": 42}, {"x-a": "1"}, "work")
    assert [(one["outcome"], one["worker"]) for one in found["attempts"]] == [("failed", "w-1")]
    shown = user.gets("dlq", "show", str(dead[0]))
    assert "attempt 1" in shown
    assert '"order": 42' in shown


def test_dead_letters_are_redriven_by_their_ids_at_once(user: User, dead: list[int]) -> None:
    made = user.gets("dlq", "redrive", str(dead[0]), str(dead[1])).splitlines()
    assert "redriven from" in user.gets("message", "show", made[0])
    assert pending(user, "work") == 2
    assert "was redriven already" in user.fails("dlq", "redrive", str(dead[0]))
    user.fails("dlq", "redrive", str(dead[2]), "999")
    assert pending(user, "other") == 0, "all of them or none"
    (again,) = user.reads("dlq", "redrive", str(dead[2]))
    assert again["dlq_id"] == dead[2]


@pytest.mark.parametrize(
    ("words", "plan", "moved"),
    [
        (["--endpoint", "work"], 2, {"work": 2, "other": 0}),
        (["--endpoint", "work", "--cause", "HTTP 500 Boom"], 1, {"work": 1, "other": 0}),
        (["--all"], 3, {"work": 2, "other": 1}),
        (["--all", "--cause", "HTTP 404 Not Found"], 2, {"work": 1, "other": 1}),
        (["--all", "--cause", "another one"], 0, {"work": 0, "other": 0}),
    ],
)
def test_a_redrive_of_many_shows_its_plan_and_changes_nothing_without_yes(
    user: User, dead: list[int], words: list[str], plan: int, moved: dict[str, int]
) -> None:
    result = user.types("dlq", "redrive", *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"Redrives {plan} dead letter" in result.stderr
    assert "--yes" in result.stderr
    shown = user.plans("dlq", "redrive", *words)
    assert (shown["plan"]["messages"], shown["done"]) == (plan, None)
    assert {channel: pending(user, channel) for channel in moved} == {"work": 0, "other": 0}
    assert user.gets("dlq", "redrive", *words, "--yes") == str(plan)
    assert {channel: pending(user, channel) for channel in moved} == moved


def test_a_redrive_of_everything_goes_in_chunks_and_leaves_closed_channels_alone(
    user: User, mq: Menzil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("menzil.watch.redriving.CHUNK", 2)
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    kill(user, mq, "hook", ["HTTP 404 Not Found"])
    kill(user, mq, "work", ["HTTP 404 Not Found"] * 5)
    user.gets("endpoint", "disable", "hook")
    result = user.types("dlq", "redrive", "--all", "--yes", "--json")
    assert result.exit_code == 0
    assert '"done": {"messages": 5}' in result.stdout
    assert "Endpoint 'hook' is disabled" in result.stderr
    assert "is disabled" in user.types("dlq", "redrive", "--endpoint", "hook", "--yes").stderr


def test_old_dead_letters_are_cleaned_up_after_the_plan(user: User, dead: list[int]) -> None:
    with psycopg.connect(user.dsn) as conn:
        conn.execute(
            "update menzil.dead_letter set failed_at = failed_at - interval '31 days' where id <= %s", [dead[1]]
        )
    assert "Deletes 2 dead letters, 2 of them never redriven" in user.types("dlq", "cleanup").stderr
    assert len(user.reads("dlq", "list")) == 3
    assert user.gets("dlq", "cleanup", "--yes") == "2"
    assert [one["id"] for one in user.reads("dlq", "list")] == dead[2:]
    assert user.reads("dlq", "cleanup", "--yes")["done"] == {"messages": 0}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "999"], "There is no dead letter 999."),
        (["redrive"], "Which dead letters?"),
        (["redrive", "1", "--all"], "Which dead letters?"),
        (["redrive", "1", "--cause", "x"], "--cause goes with"),
        (["redrive", "999"], "There is no dead letter 999."),
        (["redrive", "--endpoint", "nobody"], "There is no channel or endpoint named 'nobody'."),
        (["causes", "--endpoint", "nobody"], "There is no channel or endpoint named 'nobody'."),
    ],
)  # fmt: skip
def test_what_is_not_dead_is_one_sentence(user: User, words: list[str], said: str) -> None:
    assert said in user.fails("dlq", *words)


# --- replay -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ended(user: User, mq: Menzil) -> list[str]:
    ids = user.gets("send", "work", "--batch", stdin="1\n2\n3\n4\n").splitlines()
    mq.complete_many(mq.dequeue(3))
    mq.fail(mq.dequeue()[0], "no", permanent=True)
    return ids


def test_messages_are_replayed_by_their_ids_at_once(user: User, ended: list[str]) -> None:
    (made,) = user.gets("replay", ended[0]).splitlines()
    assert f"replay of {ended[0]}" in user.gets("message", "show", made)
    (again,) = user.reads("replay", ended[0])
    assert again["id"] == int(ended[0])


@pytest.mark.parametrize(
    ("words", "plan"),
    [
        (["--from", "-1h"], 4),
        (["--from", "1h ago", "--to", "now", "--status", "completed"], 3),
        (["--from", "1h ago", "--to", "30m ago"], 0),
        (["--from", "2001-01-01", "--status", "failed"], 1),
    ],
)
def test_a_replay_of_many_shows_its_plan_and_changes_nothing_without_yes(
    user: User, ended: list[str], words: list[str], plan: int
) -> None:
    words = ["replay", "--endpoint", "work", *words]
    result = user.types(*words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"Sends {plan} " in result.stderr
    assert "--yes" in result.stderr
    shown = user.plans(*words)
    assert (shown["plan"]["messages"], shown["done"]) == (plan, None)
    assert pending(user, "work") == 0
    assert user.gets(*words, "--yes") == str(plan)
    assert pending(user, "work") == plan


def test_a_replay_may_take_its_time_and_says_how_long(user: User, ended: list[str], mq: Menzil) -> None:
    words = ["replay", "--endpoint", "work", "--from", "-1h", "--rate", "0.001"]
    assert "over 1 h 6 min at 0.001 per second" in user.types(*words).stderr
    assert user.plans(*words)["plan"]["seconds"] == 4000
    assert user.gets(*words, "--yes") == "4"
    assert mq.dequeue(4) == [], "none is due yet"


def test_a_time_without_a_zone_is_utc(user: User, ended: list[str]) -> None:
    start = (datetime.now(UTC) - timedelta(minutes=5)).replace(tzinfo=None).isoformat()
    assert user.plans("replay", "--endpoint", "work", "--from", start)["plan"]["messages"] == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Which messages?"),
        (["--endpoint", "work"], "Which messages?"),
        (["--from", "-1d"], "Which messages?"),
        (["1", "--endpoint", "work"], "Ids and a range say different things."),
        (["999"], "There is no message 999."),
        (["--endpoint", "nobody", "--from", "-1d"], "There is no channel or endpoint named 'nobody'."),
        (["--endpoint", "work", "--from", "whenever"], "'whenever' is not a valid time."),
        (["--endpoint", "work", "--from", "-1fortnight"], "'-1fortnight' is not a valid time."),
        (["--endpoint", "work", "--from", "-9999999999d"], "is not a valid time."),
        (["--endpoint", "work", "--from", "-900000d"], "outside the years 1 to 9999"),
        (["--endpoint", "work", "--from", "-1d", "--to", "-2d"], "The range ends before it begins."),
        (["--endpoint", "work", "--from", "-1d", "--rate", "0"], "0"),
        (["--endpoint", "work", "--from", "-1d", "--rate", "1e-310"], "is not in the range 1e-09<=x<=1000000"),
        (["--endpoint", "work", "--from", "-1d", "--status", "pending"], "'pending' is not one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_one_sentence(user: User, words: list[str], said: str) -> None:
    assert said in user.fails("replay", *words)


# --- archive ----------------------------------------------------------------------------------------------------------


def test_an_archive_in_order_verifies(user: User, ended: list[str]) -> None:
    found = user.reads("archive", "verify")
    assert found["ok"] is True
    assert {one["check"] for one in found["findings"]} == {"partitions", "default partition", "months", "rows"}
    assert user.gets("archive", "verify").count("ok") == 4


def test_a_missing_month_is_found_and_mended(user: User, ended: list[str]) -> None:
    with psycopg.connect(user.dsn) as conn:
        (month,) = conn.execute("select to_char(now() at time zone 'UTC', '\"archive\"_YYYY_MM')").fetchone()
        conn.execute(f"create table kept as select * from menzil.{month}")
        conn.execute(f"drop table menzil.{month}")
        conn.execute("insert into menzil.message select * from kept")
        conn.execute("drop table kept")
    result = user.types("archive", "verify")
    assert result.exit_code == 1
    assert "no partition for this month" in result.stdout
    assert "default partition" in result.stdout
    assert "menzil archive maintain" in result.stdout
    assert user.reads("archive", "maintain")["moved"] == len(ended)
    user.gets("archive", "verify")


def test_a_month_that_hangs_nowhere_is_found(user: User) -> None:
    with psycopg.connect(user.dsn) as conn:
        conn.execute("create table menzil.archive_2001_02 (like menzil.message)")
    result = user.types("archive", "verify")
    assert result.exit_code == 1
    assert "Table archive_2001_02 is a month of the archive that is not attached to it." in result.stdout
    assert "from ('2001-02-01T00:00:00+00:00') to ('2001-03-01T00:00:00+00:00')" in result.stdout


def test_old_months_are_dropped_after_the_plan(user: User) -> None:
    with psycopg.connect(user.dsn) as conn:
        conn.execute("select menzil._make_archive_month(timestamptz '2001-02-01 00:00+00')")
    result = user.types("archive", "cleanup")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Drops 1 month of the archive, keeping 6 and the current one." in result.stderr
    assert user.plans("archive", "cleanup", "--months", "120")["plan"]["months"][0]["name"] == "archive_2001_02"
    assert user.gets("archive", "cleanup", "--yes") == "1"
    assert user.plans("archive", "cleanup")["plan"]["months"] == []


def test_maintain_makes_as_many_months_as_asked(user: User) -> None:
    assert user.reads("archive", "maintain", "--months-ahead", "5") == {"made": 2, "moved": 0}
    assert "Made 0 partitions" in user.types("archive", "maintain", "--months-ahead", "5").stderr
    assert "is not in the range" in user.fails("archive", "maintain", "--months-ahead", "999")
