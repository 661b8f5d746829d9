"""Every line of the event log says who acted and through what, in the transaction of the act."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.sql.queue import Queue

SHOP = {"user": "shop", "password": "shop"}
LAST = "select actor, via from menzil.event_log order by id desc limit 1"


def act(queue: Queue, actor: str | None = None, via: str | None = None) -> tuple[str, str]:
    """Pause a channel in a transaction that says this of itself."""
    with queue.conn.transaction():
        for name, value in (("actor", actor), ("via", via)):
            if value is not None:
                queue.conn.execute("select set_config(%s, %s, true)", [f"menzil.{name}", value])
        queue.call("channel_pause", "work")
        queue.call("channel_resume", "work")
    return tuple(queue.one(LAST))


@pytest.fixture
def shop(queue: Queue, connect) -> Iterator[Queue]:
    """A role of an application that administers its queue."""
    queue.conn.execute("create role shop login password 'shop' in role menzil_admin")
    try:
        yield Queue(connect(**SHOP))
    finally:
        queue.conn.execute("drop role shop")


def test_a_session_that_says_nothing_is_its_role(queue: Queue, shop: Queue) -> None:
    user = queue.one("select session_user::text")
    assert act(queue) == (user, "sql")
    assert act(shop) == ("shop", "sql")


def test_who_says_a_name_is_shown_with_the_role_behind_it(shop: Queue) -> None:
    assert act(shop, "ada") == ("ada (as shop)", "sql")
    assert act(shop, "shop") == ("shop", "sql")
    assert act(shop, "ada (as postgres)") == ("ada (as postgres) (as shop)", "sql"), (
        "a forged role stands before the true"
    )
    assert act(shop) == ("shop", "sql"), "nothing stays in the session"


def test_a_role_that_was_taken_on_does_not_hide_the_one_that_logged_in(queue: Queue, shop: Queue) -> None:
    shop.conn.execute("set role menzil_admin")
    assert act(shop) == ("shop", "sql")


@pytest.mark.parametrize(
    ("said", "kept"),
    [("", ""), ("  ", ""), ("a\nb\x1b[31m\tc", "a b [31m c"), ("x" * 1000, "x" * 200), ("Şükrü 😀", "Şükrü 😀")],
)
def test_a_name_is_one_short_line(shop: Queue, said: str, kept: str) -> None:
    assert act(shop, said)[0] == (f"{kept} (as shop)" if kept else "shop")


@pytest.mark.parametrize("said", ["console", "cli", "worker", "pipeline", "sql"])
def test_a_known_way_is_shown(shop: Queue, said: str) -> None:
    assert act(shop, via=said)[1] == said


@pytest.mark.parametrize("said", ["telepathy", "", "CLI"])
def test_a_way_that_nobody_knows_is_not_shown(shop: Queue, said: str) -> None:
    assert act(shop, via=said)[1] == "sql"


def test_what_a_worker_does_is_done_by_a_worker(queue: Queue, connect) -> None:
    worker = Queue(connect(application_name="menzil worker (settle)"))
    worker.call("set_setting", "circuit_breaker_threshold", "1")
    worker.call("create_endpoint", "hook", "http", {"url": "https://example.com/", "auto_disable_on_gone": True})
    worker.send("hook")
    (message,) = worker.dequeue(1, ["hook"])
    worker.fail(message, "[PERMANENT] [DISABLE] HTTP 410 Gone")
    (row,) = queue.all("select actor, via from menzil.event_log where event_type = 'endpoint.disabled'")
    assert row == (queue.one("select session_user::text"), "worker")
    assert act(worker, "ada", "cli")[1] == "cli", "what it says itself goes first"


@pytest.mark.parametrize("name", ["menzil export", "menzil pipeline", "menzil spark"])
def test_what_the_pipeline_does_is_done_by_the_pipeline(queue: Queue, connect, name: str) -> None:
    assert act(Queue(connect(application_name=name)))[1] == "pipeline"


def test_an_act_that_is_rolled_back_leaves_no_line(queue: Queue) -> None:
    before = queue.one("select count(*) from menzil.event_log")
    with queue.conn.transaction(force_rollback=True):
        queue.conn.execute("select set_config('menzil.actor', 'ada', true)")
        queue.call("channel_pause", "work")
        assert queue.one(LAST)[0].startswith("ada")
    assert queue.one("select count(*) from menzil.event_log") == before


def test_a_role_may_have_a_name_for_good(queue: Queue, shop: Queue, connect) -> None:
    queue.conn.execute("alter role shop set menzil.actor = 'the shop'")
    assert act(Queue(connect(**SHOP))) == ("the shop (as shop)", "sql")


def test_lines_from_before_have_neither(queue: Queue) -> None:
    queue.conn.execute("insert into menzil.event (event_type, entity_type) values ('old', 'channel')")
    assert tuple(queue.one(LAST)) == (None, None)


# --- runs of the pipeline ---------------------------------------------------------------------------------------------


def test_a_run_is_begun_and_ended(queue: Queue) -> None:
    run = queue.call("pipeline_run_begin", "export", "s3a://key:secret@lake/menzil")
    (row,) = queue.all("select * from menzil.pipeline_runs")
    assert (row.id, row.kind, row.lake, row.ended_at) == (run, "export", "s3a://***@lake/menzil", None)
    queue.call("pipeline_run_end", run, 10, 2, "ok")
    (row,) = queue.all("select * from menzil.pipeline_runs")
    assert (row.rows, row.files, row.verdict, row.error) == (10, 2, "ok", None)
    assert row.ended_at >= row.started_at
    queue.call("pipeline_run_end", run, 99, 99, "failed", "too late")
    assert queue.all("select * from menzil.pipeline_runs") == [row], "a run ends once"


def test_a_run_that_failed_keeps_no_password(queue: Queue) -> None:
    run = queue.call("pipeline_run_begin", "audit")
    queue.call(
        "pipeline_run_end", run, p_verdict="failed", p_error="cannot reach postgresql://u:hunter2@db/x" + "y" * 5000
    )
    error = queue.one("select error from menzil.pipeline_runs")
    assert "hunter2" not in error
    assert len(error) == 1000


def test_a_run_that_never_began_is_refused(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.UndefinedObject, match="no run 7"):
        queue.call("pipeline_run_end", 7)
    for kind in (None, "", "x" * 101):
        with pytest.raises((psycopg.errors.NullValueNotAllowed, psycopg.errors.InvalidParameterValue)):
            queue.call("pipeline_run_begin", kind)
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        queue.call("pipeline_run_end", None)


def test_old_runs_go_with_the_event_log(queue: Queue) -> None:
    old, new = queue.call("pipeline_run_begin", "export"), queue.call("pipeline_run_begin", "export")
    queue.conn.execute("update menzil.pipeline_run set started_at = now() - interval '91 days' where id = %s", [old])
    assert queue.call("job_run", "pipeline_runs") == 1
    assert queue.one("select id from menzil.pipeline_runs") == new


# --- what people may see ----------------------------------------------------------------------------------------------


def test_patterns_of_what_is_hidden_are_kept_tidy(queue: Queue) -> None:
    queue.call("set_setting", "redact", " email ,, *token* ,$.card.*,\t$[0].pin ")
    assert queue.call("setting", "redact") == "email, *token*, $.card.*, $[0].pin"
    queue.call("set_setting", "redact", "")
    assert queue.call("setting", "redact") == ""
    queue.call("set_setting", "redact", "default")
    assert "*password*" in queue.call("setting", "redact")


@pytest.mark.parametrize("value", ["$card", "email, $.a[", "$.", "a\x07b", "x" * 4001])
def test_a_pattern_that_hides_nothing_is_refused(queue: Queue, value: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        queue.call("set_setting", "redact", value)
    assert "$.card.*" in (refused.value.diag.message_hint or "")


def test_the_console_shows_redacts_or_hides(queue: Queue) -> None:
    assert queue.call("setting", "console_payloads") == "redact"
    for word in ("show", "HIDE", " redact "):
        queue.call("set_setting", "console_payloads", word)
        assert queue.call("setting", "console_payloads") == word.strip().lower()
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        queue.call("set_setting", "console_payloads", "maybe")
    assert refused.value.diag.message_hint == "Use show, redact or hide."
