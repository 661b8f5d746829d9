"""`menzil plan`, and redrives and replays at a rate, as a user types them."""

from __future__ import annotations

import shlex

import psycopg
import pytest

from menzil import Menzil
from menzil.cli.database import connected
from menzil.watch import plans
from tests.integration.cli.test_history import kill
from tests.integration.cli.user import User


@pytest.fixture
def dead(user: User, mq: Menzil) -> list[int]:
    """Three dead letters of one cause and one of another; their ids, oldest first."""
    kill(user, mq, "work", ["HTTP 404 Not Found"] * 3 + ["HTTP 500 Boom"])
    return sorted(one["id"] for one in user.reads("dlq", "list"))


@pytest.fixture
def ended(user: User, mq: Menzil) -> list[str]:
    """Three messages that were completed; their ids."""
    sent = [user.gets("send", "work", f'{{"n": {n}}}') for n in range(3)]
    for message in mq.dequeue(3):
        mq.complete(message)
    return sent


def job(user: User) -> None:
    """What a worker does once a second."""
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select menzil.job_run('plans')")


def waiting(user: User) -> int:
    return int(user.reads("channel", "show", "work")["pending"])


# --- a plan from its draft to its end ---------------------------------------------------------------------------------


def test_without_plans_there_is_nothing_to_list(user: User) -> None:
    result = user.types("plan", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "menzil plan create" in result.stderr
    assert user.reads("plan", "list") == {"plans": [], "next_before": None}


def test_a_draft_says_what_it_is_about_and_changes_nothing(user: User, dead: list[int]) -> None:
    result = user.types("plan", "create", "redrive", "--channel", "work", "--rate", "2", "--note", "after the outage")
    number = result.stdout.strip()
    assert result.exit_code == 0
    assert "Redrives 4 dead letters of work at 2 per second." in result.stderr
    assert "It takes 2 s at that rate." in result.stderr
    assert f"Nothing was changed. Let it run with `menzil plan run {number}`." in result.stderr
    assert waiting(user) == 0
    shown = user.gets("plan", "show", number)
    for words in ("draft", "after the outage", "Redrives 4 dead letters", "2 s left", ", ".join(map(str, dead[:3]))):
        assert words in shown
    found = user.reads("plan", "show", number)
    assert (found["status"], found["counted"], found["remaining"], found["percent"]) == ("draft", 4, 4, 0)
    assert (found["rate"], found["seconds_left"], found["outcome"]) == (2.0, 2.0, {})
    assert [target["first_ids"] for target in found["targets"]] == [dead[:3]]
    assert set(found["commands"]) == {"run", "stop", "again"}


def test_a_plan_runs_pauses_and_stops(user: User, dead: list[int]) -> None:
    number = user.gets("plan", "create", "redrive", "--channel", "work", "--rate", "0.001")
    assert "is running, 0 messages of 4 done." in user.gets("plan", "run", number)
    assert user.reads("plan", "pause", number)["status"] == "paused"
    assert user.reads("plan", "run", number)["status"] == "running"
    job(user)
    assert user.reads("plan", "show", number)["outcome"] == {"waiting": 1}
    assert "is stopped, 1 message of 4 done, 1 taken back." in user.gets("plan", "stop", number, "--take-back")
    assert (waiting(user), len(user.reads("dlq", "list", "--status", "failed"))) == (0, 4)
    assert "has ended" in user.fails("plan", "run", number)


def test_a_plan_may_be_carried_out_in_the_command_itself(user: User, dead: list[int]) -> None:
    number = user.gets("plan", "create", "redrive", "--all")
    found = user.reads("plan", "run", number, "--here")
    assert (found["status"], found["done"], found["percent"]) == ("done", 4, 100)
    assert waiting(user) == 4


def test_a_plan_that_is_made_with_yes_runs_at_once(user: User, dead: list[int]) -> None:
    result = user.types("plan", "create", "cancel", "--all", "--yes", "--json")
    assert "No worker is alive" in result.stderr
    assert '"status": "running"' in result.stdout


def test_a_plan_says_why_it_waits(user: User, dead: list[int]) -> None:
    user.gets("channel", "pause", "work")
    result = user.types("plan", "create", "redrive", "--channel", "work", "--yes")
    assert "It would wait: Channel 'work' is paused." in result.stderr
    number = result.stdout.strip()
    said = user.types("plan", "run", number, "--here")
    assert "The plan waits. Channel 'work' is paused." in said.stderr
    assert "Workers carry on with it" in said.stderr
    with connected(user.dsn) as db:
        assert [row["id"] for row in plans.waiting(db.run)] == [int(number)]


def test_lists_go_page_by_page(user: User, dead: list[int]) -> None:
    numbers = [int(user.gets("plan", "create", "redrive", "--all", "--key", str(n))) for n in range(3)]
    found = user.reads("plan", "list", "--limit", "2")
    assert [row["id"] for row in found["plans"]] == numbers[:0:-1]
    assert found["next_before"] == numbers[1]
    assert f"--before {numbers[1]}" in user.types("plan", "list", "--limit", "2").stderr
    assert [row["id"] for row in user.reads("plan", "list", "--before", str(numbers[1]))["plans"]] == numbers[:1]
    user.gets("plan", "stop", str(numbers[0]))
    assert [row["id"] for row in user.reads("plan", "list", "--status", "stopped")["plans"]] == numbers[:1]
    assert user.gets("plan", "create", "redrive", "--all", "--key", "1") == str(numbers[1])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["create", "redrive"], "The filter of the plan is empty."),
        (["create", "replay", "--all"], "has no key 'all'"),
        (["create", "redrive", "--channel", "wrok"], "Did you mean work?"),
        (["create", "redrive", "--id", "1", "--channel", "work"], "Ids and other keys"),
        (["create", "cancel", "--channel", "work", "--rate", "1"], "A cancel has no rate."),
        (["create", "redrive", "--cause", "no"], "is not the hash of a cause"),
        (["create", "redrive", "--channel", "work", "--since", "soon"], "is not a valid time"),
        (["show", "987"], "There is no plan 987."),
        (["run", "987"], "There is no plan 987."),
        (["pause", "987"], "There is no plan 987."),
        (["stop", "987"], "There is no plan 987."),
    ],
)
def test_what_cannot_be_planned_is_one_sentence_and_a_hint(user: User, words: list[str], said: str) -> None:
    answer = user.fails("plan", *words)
    assert said in answer
    assert "Hint: " in answer


@pytest.mark.parametrize(
    "words",
    [
        ["redrive", "--channel", "work", "--since", "2026-01-01T00:00:00+00:00", "--rate", "2.5"],
        ["redrive", "--all"],
        ["redrive", "--id", "1", "--id", "2"],
        ["redrive", "--channel", "work", "--cause", "0123456789ab"],
        ["replay", "--channel", "it's mine", "--status", "completed"],
    ],
)
def test_the_command_that_a_plan_offers_makes_the_same_plan(user: User, dead: list[int], words: list[str]) -> None:
    user.gets("channel", "set", "it's mine")
    first = user.reads("plan", "create", *words)
    typed = shlex.split(first["commands"]["again"]["cli"])
    assert typed[:3] == ["menzil", "plan", "create"]
    second = user.reads(*typed[1:])
    assert [second[key] for key in ("kind", "filter", "rate", "counted")] == [
        first[key] for key in ("kind", "filter", "rate", "counted")
    ]
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        third = conn.execute(first["commands"]["again"]["sql"]).fetchone()
    assert third is not None
    assert user.reads("plan", "show", str(third[0]))["filter"] == first["filter"]


# --- at a rate --------------------------------------------------------------------------------------------------------


def test_a_redrive_at_a_rate_is_a_plan_that_can_be_taken_back(user: User, dead: list[int]) -> None:
    words = ["dlq", "redrive", "--endpoint", "work", "--rate", "0.01"]
    shown = user.plans(*words)["plan"]
    assert (shown["messages"], shown["rate"], shown["seconds"]) == (4, 0.01, 400)
    assert user.reads("plan", "list")["plans"] == []
    result = user.types(*words, "--yes")
    assert (result.exit_code, result.stdout) == (0, "4\n")
    assert "Redrives 4 dead letters over 6 min 40 s at 0.01 per second." in result.stderr
    (made,) = user.reads("plan", "list")["plans"]
    assert f"`menzil plan stop {made['id']} --take-back`" in result.stderr
    assert (made["status"], made["done"]) == ("running", 4)
    user.gets("plan", "stop", str(made["id"]), "--take-back")
    assert (waiting(user), len(user.reads("dlq", "list", "--status", "failed"))) == (0, 4)


def test_a_redrive_of_a_cause_at_a_rate_takes_that_cause(user: User, dead: list[int]) -> None:
    done = user.reads("dlq", "redrive", "--all", "--cause", "HTTP 404 Not Found", "--rate", "100", "--yes")["done"]
    assert done["messages"] == 3
    assert user.reads("plan", "show", str(done["plan_id"]))["counted"] == 3
    assert len(user.reads("dlq", "list", "--status", "failed")) == 1
    assert user.reads("dlq", "redrive", "--all", "--cause", "never", "--rate", "1", "--yes")["done"]["messages"] == 0


def test_a_cause_of_two_classes_is_refused_at_a_rate(user: User, mq: Menzil, dead: list[int]) -> None:
    user.gets("send", "work", "{}")
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select menzil.set_retry_policy('work', '{\"max_retries\": 0}')")
    (message,) = mq.dequeue()
    mq.fail(message, "HTTP 500 Boom")
    said = user.fails("dlq", "redrive", "--endpoint", "work", "--cause", "HTTP 500 Boom", "--rate", "1", "--yes")
    assert "The cause has 2 classes" in said
    assert "menzil plan create redrive --cause" in said


def test_ids_go_at_once_and_have_no_rate(user: User, dead: list[int]) -> None:
    assert "--rate goes with --endpoint or --all." in user.fails("dlq", "redrive", str(dead[0]), "--rate", "1")


def test_a_replay_at_a_rate_beyond_an_hour_is_left_to_workers(user: User, ended: list[str]) -> None:
    words = ["replay", "--endpoint", "work", "--from", "-1h", "--rate", "0.0005"]
    result = user.types(*words, "--yes", "--json")
    assert result.exit_code == 0
    assert '"messages": 3' in result.stdout.split('"done"')[1]  # those that workers are left with included
    assert "Workers carry on with it" in result.stderr
    (made,) = user.reads("plan", "list")["plans"]
    assert (made["counted"], made["done"], made["status"]) == (3, 1, "running")


def test_a_replay_at_a_rate_waits_for_room(user: User, ended: list[str]) -> None:
    user.gets("channel", "set", "work", "--max-size", "2")
    user.gets("send", "work", "{}")
    result = user.types("replay", "--endpoint", "work", "--from", "-1h", "--rate", "1000", "--yes")
    assert result.stdout == "3\n"
    assert "The plan waits. Channel 'work' is full" in result.stderr
    assert waiting(user) == 2
