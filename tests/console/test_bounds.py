"""Bounds: a console cannot hurt the queue, and what it cannot get in time it says."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from menzil.console import Access, Console
from menzil.console.database import Database
from menzil.console.pages import all_pages
from menzil.console.parts import Look
from menzil.model.errors import RefusedError
from menzil.ops import channels, looking
from menzil.ops.op import Op
from tests.acceptance.pooler import PGBOUNCER, pooler
from tests.console.conftest import Full
from tests.console.furnished import furnish
from tests.console.paths import paths
from tests.console.seat import Browser, served

#: Tables that every page of the queue reads.
LOCKED = (
    "message", "channel", "gate", "lane", "dead_letter", "worker", "event", "pulse_minute", "setting_value", "plan",
    "schedule", "event_type", "subscription", "archive_month", "bridge",
)  # fmt: skip


def test_every_page_answers_in_4_seconds_while_every_table_is_locked(full: Full) -> None:
    with (
        served(Console(full.dsn, local=Access.admin("ada"))) as browser,
        psycopg.connect(full.dsn) as conn,
    ):
        assert browser.get("/workers").status == 200
        conn.execute("set lock_timeout = '60s'")
        conn.execute(f"lock table {', '.join(f'menzil.{name}' for name in LOCKED)} in access exclusive mode")
        for pattern, path in paths(full).items():
            answer = browser.get(path)
            assert answer.status == 200, (pattern, answer.words[:300])
            assert answer.seconds < 4, pattern
            if pattern == "/health":
                assert "Could not look: A table is locked" in answer.words
            elif pattern != "/compare":
                assert 'class="trouble"' in answer.text, pattern
        conn.rollback()
        assert "billing" in until_well(browser, "/channels")


def test_new_console_says_within_4_seconds_that_the_version_of_the_schema_is_locked(full: Full) -> None:
    """Its first connection asks for the version; a console at work has done so."""
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser, psycopg.connect(full.dsn) as conn:
        conn.execute("lock table menzil.installed_code in access exclusive mode")
        for path in paths(full).values():
            answer = browser.get(path)
            assert answer.status == 200, answer.words[:300]
            assert answer.seconds < 4, path
            assert "A table is locked: this part waited 100 ms and gave up." in answer.words, path
        with ThreadPoolExecutor(8) as viewers:
            answers = list(viewers.map(browser.get, [f"/messages?q=id%3A{number}" for number in range(24)]))
        assert {"A table is locked" in answer.words and answer.seconds < 4 for answer in answers} == {True}
        assert browser.get("/healthz").status == 503
        conn.rollback()
        assert "billing" in until_well(browser, "/channels")


def until_well(browser: Browser, path: str) -> str:
    """The page, once its parts are there again: answers are shared for two seconds."""
    deadline = time.monotonic() + 60
    while 'class="trouble"' in (answer := browser.get(path)).text:
        assert time.monotonic() < deadline, answer.words[:500]
        time.sleep(0.2)
    return answer.words


def test_one_locked_table_leaves_the_other_parts_of_a_page(full: Full) -> None:
    with served(Console(full.dsn, local=Access.admin("ada"))) as browser, psycopg.connect(full.dsn) as conn:
        conn.execute("lock table menzil.pulse_minute in access exclusive mode")
        page = browser.get(f"/messages/{full.ids.waiting}")
        assert 'class="trouble"' not in page.text
        page = browser.get("/workers")
        assert "batch-1/99" in page.words
        page = browser.get("/channels/billing")
        assert page.status == 200
        assert "A table is locked: this part waited 100 ms and gave up." in page.words
        twin = browser.get("/channels/billing.json")
        assert "locked" in twin.json["troubles"]["curve"]


def test_locked_event_log_is_told_where_a_channel_is_paused_and_read_nowhere_else(db: str) -> None:
    with (
        psycopg.connect(db, autocommit=True) as conn,
        psycopg.connect(db) as stranger,
    ):
        conn.execute("select menzil.channel_set('billing'), menzil.channel_set('mail')")
        reads = "select count(*) from pg_locks where pid = pg_backend_pid() and relation = 'menzil.event'::regclass"
        with conn.transaction():
            conn.execute("select * from menzil.channel_state()")
            assert conn.execute(reads).fetchone() == (0,)
        conn.execute("select menzil.channel_pause('mail')")
        stranger.execute("lock table menzil.event in access exclusive mode")
        with served(Console(db, local=Access.admin("ada"))) as browser:
            page = browser.get("/channels")
            assert page.status == 200
            assert 'class="trouble"' not in page.text
            assert "paused; the event log does not say by whom" in page.words


def test_every_part_that_is_missing_leaves_its_sentence_in_page_and_twin(
    full: Full, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One part after the other is cut, and all others are there."""

    def cut(look: Look) -> None:
        raise psycopg.errors.LockNotAvailable

    sentence, silent = "A table is locked: this part waited 100 ms and gave up.", []
    console = Console(full.dsn, local=Access.admin("ada"))
    with served(console) as browser:
        for page, name in [(one, name) for one in all_pages() for name in one.parts]:
            console.desk.forget()
            place, _, query = paths(full)[page.path].partition("?")
            with monkeypatch.context() as patched:
                patched.setitem(page.parts, name, cut)
                answer = browser.get(f"{place}?{query}")
                twin = browser.get(f"{page.twin_path or place + '.json'}?{query}")
            assert answer.status == 200
            if sentence not in answer.words:
                silent.append(f"{page.path} {name}")
            if sentence not in twin.text:
                silent.append(f"{page.path} {name} in JSON")
    assert silent == []


def test_statement_that_takes_long_is_stopped(full: Full) -> None:
    database = Database(full.dsn)
    slow: Op[object] = Op("select pg_sleep(20)", (), lambda rows: rows)
    began = time.monotonic()
    try:
        with pytest.raises(psycopg.errors.QueryCanceled):
            database.read(lambda run: run(slow), time.monotonic() + 1)
        assert time.monotonic() - began < 15
        assert database.read(lambda run: run(looking.now()), time.monotonic() + 60) is not None
    finally:
        database.close()


def test_reading_connections_write_nothing(full: Full) -> None:
    database = Database(full.dsn)
    try:
        with pytest.raises(RefusedError, match="read-only"):
            database.read(lambda run: run(channels.channel_pause("billing")), time.monotonic() + 60)
        asked: Op[list[tuple[str, ...]]] = Op(
            "select current_setting('transaction_read_only'), current_setting('statement_timeout'), "
            "current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), "
            "current_setting('application_name')",
            (),
            lambda rows: rows,
        )
        (found,) = database.read(lambda run: run(asked), time.monotonic() + 60)
        assert found == ("on", "3s", "100ms", "5s", "menzil-console")
    finally:
        database.close()


def test_refused_question_does_not_spoil_the_next_one(full: Full) -> None:
    database = Database(full.dsn)
    wrong: Op[object] = Op("select 1 / 0", (), lambda rows: rows)

    def ask(run: object) -> str:
        with pytest.raises(RefusedError, match="division by zero"):
            run(wrong)  # type: ignore[operator]
        return str(run(looking.now()))  # type: ignore[operator]

    try:
        assert database.read(ask, time.monotonic() + 60)
    finally:
        database.close()


def test_console_uses_four_connections_for_any_number_of_viewers(full: Full) -> None:
    ours = "select pid from pg_stat_activity where application_name = 'menzil-console' and datname = current_database()"
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        others = {pid for (pid,) in conn.execute(ours)}  # of consoles before, which may be on their way out
        with served(Console(full.dsn, local=Access.admin("ada"))) as browser, ThreadPoolExecutor(24) as viewers:
            wanted = [f"{path}{'&' if '?' in path else '?'}limit={number}" for number in range(20, 25)
                      for path in paths(full).values()]  # fmt: skip
            answers = list(viewers.map(browser.get, wanted))
            came = {pid for (pid,) in conn.execute(ours)} - others
    assert {answer.status for answer in answers} == {200}
    assert 1 <= len(came) <= 4 + 4, "four of this console and of the one that the session shares"


def test_role_that_only_watches_sees_every_page_without_messages(full: Full) -> None:
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        conn.execute("create role console_watcher login password 'x' in role menzil_monitor")
    try:
        dsn = make_conninfo(full.dsn, user="console_watcher", password="x")
        with served(Console(dsn, local=Access.admin("ada"))) as browser:
            for path in paths(full).values():
                answer = browser.get(path)
                assert answer.status == 200, answer.words[:300]
            message = browser.get(f"/messages/{full.ids.exact}").words
            assert "is paused" in message
            assert "permission denied" in message
            assert "grant menzil" in message
            assert "6 channels" in browser.get("/channels").words or "billing" in browser.get("/channels").words
            channel = browser.get("/channels/billing")
            assert "In flight" in channel.words, "what the role may see is there"
            assert "The role of the console in the database may not read messages." in channel.words
            assert 'class="trouble"' not in channel.text, channel.words[:600]
            assert browser.get("/channels/billing.json").json["next"] is None
    finally:
        with psycopg.connect(full.dsn, autocommit=True) as conn:
            conn.execute("drop role console_watcher")


def test_role_that_reads_messages_sees_every_part_of_every_page(full: Full) -> None:
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        conn.execute("create role console_reader login password 'x' in role menzil_monitor, menzil_pipeline")
    try:
        dsn = make_conninfo(full.dsn, user="console_reader", password="x")
        with served(Console(dsn, local=Access.admin("ada"))) as browser:
            for path in paths(full).values():
                answer = browser.get(path)
                assert answer.status == 200, answer.words[:300]
                assert "permission denied" not in answer.words, path
    finally:
        with psycopg.connect(full.dsn, autocommit=True) as conn:
            conn.execute("drop role console_reader")


def test_console_without_a_database_says_so_and_comes_back(full: Full, server: object) -> None:
    parts = conninfo_to_dict(full.dsn)
    nowhere = make_conninfo(full.dsn, port="1")
    assert parts["port"] != "1"
    with served(Console(nowhere, local=Access.admin("ada"))) as browser:
        for path in ("/", "/channels", f"/messages/{full.ids.waiting}", "/health"):
            answer = browser.get(path)
            assert answer.status == 200
            assert answer.seconds < 4
            assert "The server cannot be reached" in answer.words
            assert "All is well" not in answer.words
        assert browser.get("/healthz").status == 503
        for path in ("/overview.json", "/workers.json", "/health.json", "/messages.json"):
            twin = browser.get(path)
            assert twin.status == 503, path
            assert "The server cannot be reached" in twin.json["error"]


def test_health_is_not_said_to_be_good_where_a_role_may_not_look(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("create role nosy login password 'nosy'")
        try:
            with served(Console(make_conninfo(db, user="nosy", password="nosy"), local=Access.admin("ada"))) as browser:
                page = browser.get("/health")
                assert "Could not look" in page.words
                assert "All is well" not in page.text
                assert "without an answer" in page.text
                assert browser.get("/overview.json").status == 503
        finally:
            conn.execute("drop role nosy")


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_every_page_and_an_act_work_through_a_pooler_in_transaction_mode(db: str) -> None:
    ids = furnish(db, history=False)
    with pooler(db) as dsn, served(Console(dsn, local=Access.admin("ada"))) as browser:
        for path in paths(Full(db, ids)).values():
            answer = browser.get(path)
            assert answer.status == 200
            assert 'class="trouble"' not in answer.text, answer.words[:600]
        page = browser.get("/acts/channel-pause?channel=billing")
        form = {"csrf": page.field("csrf"), "plan": page.field("plan")}
        assert browser.post("/acts/channel-pause/do", form).status == 303
        with psycopg.connect(dsn, prepare_threshold=None) as other:
            for _ in range(6):
                row = other.execute(
                    "select current_setting('statement_timeout'), current_setting('transaction_read_only')"
                ).fetchone()
                assert row == ("0", "off"), "nothing stays in the sessions that others share"
                other.commit()


def test_no_page_asks_for_more_than_it_shows() -> None:
    assert {page.live for page in all_pages()} <= {0, 2, 3, 5, 10}


def test_role_without_any_right_is_told_what_the_console_needs(full: Full) -> None:
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        conn.execute("create role console_stranger login password 'x'")
    try:
        dsn = make_conninfo(full.dsn, user="console_stranger", password="x")
        with served(Console(dsn, local=Access.admin("ada"))) as browser:
            page = browser.get("/channels")
            assert page.status == 200
            assert "grant menzil_monitor, menzil_pipeline to the role of the console" in page.words
    finally:
        with psycopg.connect(full.dsn, autocommit=True) as conn:
            conn.execute("drop role console_stranger")


def test_page_of_workers_lists_some_of_many_channels_that_no_worker_serves(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select count(menzil.channel_set('c' || g)) from generate_series(1, 300) g")
        conn.execute("select count(menzil.send('c' || g, '{}')) from generate_series(1, 300) g")
    with served(Console(db, local=Access.admin("ada"))) as browser:
        page = browser.get("/workers")
        assert page.text.count("menzil worker MODULE:APP --channels c") == 100
        assert "And 200 more channels: all of them, the oldest first" in page.words


def test_page_of_turns_names_a_hundred_of_the_channels_that_are_passed_over(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select count(menzil.channel_set('held-' || n)) from generate_series(101, 230) n")
        conn.execute("select count(menzil.send('held-' || n, '{}')) from generate_series(101, 230) n")
        conn.execute("select count(menzil.channel_pause('held-' || n)) from generate_series(101, 230) n")
    with served(Console(db, local=Access.admin("ada"))) as browser:
        page = browser.get("/turns")
        assert page.text.count('data-key="held-') == 100
        assert "130 channels skipped" in page.text
        assert "And 30 more channels: all that are held" in page.words
        assert len(browser.get("/turns.json").json["skipped"]) == 130
