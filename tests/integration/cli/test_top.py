"""`menzil top`: its frames and its keys, on a real queue."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable

import psycopg
import pytest
from textual.coordinate import Coordinate
from textual.pilot import Pilot
from textual.widgets import DataTable, Footer, Input, Static

from menzil import Menzil
from menzil.cli.top.app import Top
from menzil.cli.top.link import Link
from menzil.cli.top.views import milliseconds, queue
from menzil.model.errors import ConnectionFailedError
from tests.integration.cli.user import User

Play = Callable[[Top, "Pilot[None]"], Awaitable[None]]


def play(dsn: str, script: Play, *, size: tuple[int, int] = (160, 40), **given: str) -> None:
    """Sit in front of it and press keys."""

    async def run() -> None:
        link = Link(dsn)
        app = Top({"": link}, **given)
        try:
            async with app.run_test(size=size) as pilot:
                await shown(app, lambda: app.picture is not None)
                await script(app, pilot)
        finally:
            link.close()

    asyncio.run(run())


async def shown(app: Top, condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something to be on the screen."""
    ends = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < ends, (app.picture, said(app))
        await asyncio.sleep(0.02)


def names(app: Top) -> list[str]:
    return [str(key.value) for key in app.query_one(DataTable).rows]


def head(app: Top) -> str:
    return str(app.query_one("#head", Static).render())


def said(app: Top) -> str:
    return str(app.query_one("#said", Static).render())


@pytest.fixture
def furnished(user: User, mq: Menzil) -> User:
    """Three channels: work with the oldest message, busy with the most, held that is paused."""
    for name in ("busy", "held"):
        mq.channel_set(name)
    mq.send("work", {"password": "hunter2"}, ordering_key="k")
    mq.send_batch("busy", [{}] * 5)
    mq.send_batch("held", [{}] * 2)
    mq.channel_pause("held")
    return user


def test_channels_are_listed_and_sorted_by_a_key(furnished: User) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        assert names(app) == ["work", "busy", "held"]
        assert "waiting 8" in head(app)
        await pilot.press("w")
        await shown(app, lambda: names(app) == ["busy", "held", "work"])
        assert "by waiting" in head(app)
        await pilot.press("o")
        await shown(app, lambda: names(app)[0] == "work")
        for key, order in (("f", "in flight"), ("r", "rate")):
            await pilot.press(key)
            await shown(app, lambda order=order: f"by {order}" in head(app))  # type: ignore[misc]

    play(furnished.dsn, script)


def test_keys_at_the_bottom_fit_a_terminal_of_80_columns(furnished: User) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.pause()
        assert app.query_one(Footer).max_scroll_x == 0
        assert "w waiting, o oldest, f in flight, r rate" in said(app)

    play(furnished.dsn, script, size=(80, 24))


def test_enter_leads_to_a_channel_then_to_a_message_and_escape_back(furnished: User) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down", "enter")
        await shown(app, lambda: "channel held" in head(app))
        assert "paused" in head(app)
        assert len(names(app)) == 2
        first = names(app)[0]
        await pilot.press("enter")
        await shown(app, lambda: f"message {first}" in head(app))
        assert "channel paused: " in head(app)
        assert "menzil channel resume held" in head(app)
        assert app.picture is not None
        assert app.picture.rows[0]["what"] == "sent"
        await pilot.press("escape")
        await shown(app, lambda: "channel held" in head(app))
        await pilot.press("escape")
        await shown(app, lambda: "channels by" in head(app))
        await pilot.press("escape")  # there is nothing further back
        assert len(app.stack) == 1

    play(furnished.dsn, script)


def test_a_filter_narrows_the_channels(furnished: User) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("slash")
        assert app.query_one("#filter", Input).display
        await pilot.press(*"HEL", "enter")
        await shown(app, lambda: names(app) == ["held"])
        await pilot.press("slash", "escape")
        assert not app.query_one("#filter", Input).display
        assert names(app) == ["held"]

    play(furnished.dsn, script)


def test_letters_typed_into_the_filter_are_not_keys(furnished: User) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"a", "slash")
        assert app.query_one("#filter", Input).value == "a/"
        await pilot.press("backspace", "backspace", *"work", "enter")
        await shown(app, lambda: names(app) == ["work"])
        assert app.order == "oldest"
        assert not app.paused

    play(furnished.dsn, script)


def test_endpoints_causes_and_workers_have_keys(furnished: User, mq: Menzil) -> None:
    furnished.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    mq.fail(mq.dequeue(channels="work")[0], "HTTP 500 password=hunter2", permanent=True)
    with psycopg.connect(furnished.dsn, autocommit=True) as conn:
        conn.execute("select menzil.worker_hello('w-1', 'here', 1, '1.0', array['work'])")

    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("e")
        await shown(app, lambda: names(app) == ["hook"])
        await pilot.press("k")
        await shown(app, lambda: names(app) == ["w-1"])
        await pilot.press("d")
        await shown(app, lambda: "dead letters by cause" in head(app))
        assert app.picture is not None
        assert app.picture.rows[0]["endpoint_name"] == "work"
        await pilot.press("escape")
        await shown(app, lambda: "channels by" in head(app))

    play(furnished.dsn, script)


def test_a_view_without_rows_says_so(user: User, mq: Menzil) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        for key, sentence in (
            ("e", "There are no endpoints. Make one with `menzil endpoint create`."),
            ("d", "There are no dead letters."),
            ("k", "No worker is known. Start one with `menzil worker`."),
        ):
            await pilot.press(key)
            await shown(app, lambda sentence=sentence: head(app) == sentence)  # type: ignore[misc]
        await pilot.press("escape")
        await shown(app, lambda: names(app) == ["work"])
        await pilot.press("enter")
        await shown(app, lambda: "No message of it is due." in head(app))
        mq.send("work", {})
        await shown(app, lambda: len(names(app)) == 1)
        assert "No message" not in head(app)
        await pilot.press("escape", "slash", *"zz", "enter")
        await shown(app, lambda: "No channel has 'zz' in its name." in head(app))

    play(user.dsn, script)


def test_a_queue_without_channels_says_how_to_make_one(db: str) -> None:
    line = "There are no channels yet. Make one with `menzil channel set` or `menzil endpoint create`."
    assert line in User(db).gets("top", "--once")


def test_one_endpoint_and_one_worker_are_told_as_one(user: User, mq: Menzil) -> None:
    user.gets("endpoint", "create", "hook", "--url", "https://example.com/")
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select menzil.worker_hello('w-1', 'here', 1, '1.0', array['work'])")

    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("e")
        await shown(app, lambda: head(app) == "1 endpoint")
        await pilot.press("k")
        await shown(app, lambda: head(app) == "1 worker")

    play(user.dsn, script)


def test_a_pause_stops_the_clock_and_a_second_press_starts_it(furnished: User, mq: Menzil) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("p")
        assert "paused" in said(app)
        before = app.picture
        mq.send_batch("busy", [{}] * 7)
        for _ in range(2):
            await app.tick()
        assert app.picture is before
        await pilot.press("p")
        await shown(app, lambda: "waiting 15" in head(app))

    play(furnished.dsn, script)


def test_the_cursor_stays_on_its_row_when_rows_change(furnished: User, mq: Menzil) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        await pilot.press("down")  # to busy
        mq.channel_set("aaa")
        mq.send("aaa", {})
        await shown(app, lambda: len(names(app)) == 4)
        assert names(app)[app.query_one(DataTable).cursor_row] == "busy"

    play(furnished.dsn, script)


def test_names_of_strangers_are_text_and_nothing_else(user: User, mq: Menzil) -> None:
    with psycopg.connect(user.dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('[red]x[/red][@click=app.quit]y')")
        conn.execute("select menzil.send('[red]x[/red][@click=app.quit]y', '{}')")

    async def script(app: Top, pilot: Pilot[None]) -> None:
        table = app.query_one(DataTable)
        assert "[red]x[/red][@click=app.quit]y" in str(table.get_cell_at(Coordinate(0, 0)))
        await pilot.press("enter")
        await shown(app, lambda: "channel [red]x[/red][@click=app.quit]y" in head(app))

    play(user.dsn, script)


def test_a_lost_connection_is_told_and_opened_again(furnished: User, mq: Menzil) -> None:
    async def script(app: Top, pilot: Pilot[None]) -> None:
        first = app.link.open().info.backend_pid
        with psycopg.connect(furnished.dsn, autocommit=True) as conn:
            conn.execute("select pg_terminate_backend(%s)", (first,))
        mq.send("busy", {})
        await shown(app, lambda: "waiting 9" in head(app))
        assert app.link.open().info.backend_pid != first

    play(furnished.dsn, script)


def test_it_holds_one_connection_that_cannot_write(furnished: User) -> None:
    link = Link(furnished.dsn)
    link.ask(queue().look)
    with psycopg.connect(furnished.dsn, autocommit=True) as conn:
        count = "select count(*) from pg_stat_activity where application_name = 'menzil-top'"
        assert conn.execute(count).fetchone() == (1,)
    conn_of_top = link.open()
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), conn_of_top.transaction():
        conn_of_top.execute("select menzil.send('work', '{}')")
    link.close()


def test_a_server_that_cannot_be_reached_is_told_at_once() -> None:
    with pytest.raises(ConnectionFailedError):
        Link("host=127.0.0.1 port=1 dbname=x").ask(queue().look)


def test_one_frame_is_a_plain_table(furnished: User) -> None:
    said_once = furnished.gets("top", "--once", "--sort", "waiting")
    assert [line.split()[0] for line in said_once.splitlines()[-3:]] == ["busy", "held", "work"]
    assert "\x1b" not in said_once
    assert furnished.gets("top", "--filter", "bus").splitlines()[-1].split()[0] == "busy"


def test_json_has_the_keys_of_the_overview(furnished: User) -> None:
    found = furnished.reads("top", "--once")
    assert (found["waiting"], found["channels"][0]["channel"]) == (8, "work")
    assert {"oldest_s", "in_flight", "dead", "p95_ms", "workers_alive", "rates", "channels", "as_of"} <= found.keys()


def test_a_simple_terminal_gets_a_table_and_no_error(furnished: User) -> None:
    env = {**os.environ, "MENZIL_DSN": furnished.dsn, "TERM": "dumb"}
    command = [sys.executable, "-m", "menzil", "top"]
    answer = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    assert "busy" in answer.stdout
    assert answer.stderr == ""


def test_json_goes_on_a_line_a_second_until_nobody_reads(furnished: User) -> None:
    env = {**os.environ, "MENZIL_DSN": furnished.dsn}
    command = [sys.executable, "-m", "menzil", "top", "--json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdout.close()
        process.wait(timeout=60)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert [line["waiting"] for line in lines] == [8, 8, 8]
    assert lines[0]["as_of"] < lines[1]["as_of"] < lines[2]["as_of"]


def test_a_locked_table_costs_frames_and_does_not_end_it(furnished: User) -> None:
    command = [sys.executable, "-m", "menzil", "top", "--json", "--dsn", furnished.dsn]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as seat,
        psycopg.connect(furnished.dsn) as stranger,
    ):
        assert seat.stdout is not None
        assert seat.stderr is not None
        try:
            assert seat.stdout.readline().startswith("{")
            stranger.execute("lock table menzil.gate in access exclusive mode")
            assert seat.stderr.readline() == "A frame is missing: canceling statement due to lock timeout.\n"
            stranger.rollback()
            assert seat.stdout.readline().startswith("{")
            assert seat.stdout.readline().startswith("{")
        finally:
            seat.kill()


@pytest.mark.parametrize(("value", "said_so"), [(4.2, "4 ms"), (1500, "1.5 s"), (90_000, "1 min 30 s")])
def test_latencies_have_the_unit_a_person_would_choose(value: float, said_so: str) -> None:
    assert milliseconds(value) == said_so
