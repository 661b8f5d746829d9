"""Pages: each answers, full or empty, below any prefix, and says what is there exactly and safely."""

from __future__ import annotations

import re
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from menzil import Menzil
from menzil.console import Access, Console
from menzil.console.pages import all_pages
from menzil.model.redact import MARK
from tests.console.conftest import Full
from tests.console.furnished import EXACT, HOSTILE, SECRET
from tests.console.paths import lists, paths
from tests.console.seat import Answer, Browser, served

PATTERNS = sorted(page.path for page in all_pages())


def is_page(answer: Answer) -> None:
    """What every page has: a title with more than our name, landmarks, one heading, and nothing that failed."""
    assert answer.status == 200, answer.words[:800]
    text = answer.text
    assert text.count("<h1") == 1
    assert re.search(r"<title>[^<]+ · menzil</title>", text)
    for landmark in ('<header class="top"', '<nav class="places"', '<main id="main"', '<footer class="foot"'):
        assert text.count(landmark) == 1, landmark
    assert 'class="skip"' in text
    assert re.search(r"as of <span data-as-of>\d\d:\d\d:\d\d</span>", text)
    assert 'class="trouble"' not in text, answer.words[:1500]
    for table in re.findall(r"<table.*?</table>", text, re.DOTALL):
        assert "<caption" in table
        assert all('scope="' in head for head in re.findall(r"<th\b[^>]*>", table))
    for picture in re.findall(r"<svg[^>]*>", text):
        assert 'role="img" aria-label="' in picture or 'aria-hidden="true"' in picture


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_page_of_a_full_queue_answers(seat: Browser, full: Full, pattern: str) -> None:
    is_page(seat.get(paths(full)[pattern]))


@pytest.mark.parametrize("path", lists())
def test_every_page_of_an_empty_queue_answers(empty_seat: Browser, path: str) -> None:
    is_page(empty_seat.get(path))


@pytest.mark.parametrize("window", ["1h", "6h", "48h", "90d", "nonsense"])
def test_charts_have_every_window(seat: Browser, window: str) -> None:
    is_page(seat.get(f"/?window={window}"))
    is_page(seat.get(f"/channels/billing?window={window}"))


def test_every_message_of_a_full_queue_has_its_page(seat: Browser, full: Full) -> None:
    ids = full.ids
    for number in (ids.waiting, ids.in_flight, ids.completed, ids.dead, ids.redriven, ids.retrying, ids.behind_key,
                   ids.scheduled, ids.hostile, ids.exact, ids.binary):  # fmt: skip
        is_page(seat.get(f"/messages/{number}"))


def test_every_channel_of_a_full_queue_has_its_page(seat: Browser) -> None:
    answer = seat.get("/channels")
    links = set(re.findall(r'href="(/channels/[^"?]+)"', answer.text))
    assert len(links) == 9
    for link in links:
        is_page(seat.get(link))


@pytest.mark.parametrize("path", ["/nowhere", "/messages/99999999", "/messages/abc", "/channels/~", "/static/x.js"])
def test_what_is_not_there_is_a_404_with_a_sentence(seat: Browser, path: str) -> None:
    answer = seat.get(path)
    assert answer.status == 404
    assert re.search(r"<h1>[^<]+\.</h1>", answer.text), answer.words


def test_unknown_channel_is_told_the_nearest_name(seat: Browser) -> None:
    answer = seat.get("/channels/biling")
    assert answer.status == 404
    assert "There is no channel named 'biling'. Did you mean billing?" in answer.words


def test_waiting_message_says_why_it_waits(seat: Browser, full: Full) -> None:
    paused = seat.get(f"/messages/{full.ids.exact}")
    assert "is paused" in paused.words
    assert "menzil channel resume thumbnails" in paused.words
    assert 'href="/acts/channel-resume?channel=thumbnails"' in paused.text


def test_numbers_of_a_payload_are_exact_to_the_digit(seat: Browser, full: Full) -> None:
    page = seat.get(f"/messages/{full.ids.exact}")
    assert page.words.count(EXACT) == 2, "in the tree and in the raw view"
    assert "9007199254740993" in page.words
    twin = seat.get(f"/messages/{full.ids.exact}.json")
    assert f'"amount": {EXACT}' in twin.text


def test_bytes_are_shown_as_hex_where_payloads_are_shown_as_they_are(seat: Browser, full: Full) -> None:
    assert "hidden as a whole" in seat.get(f"/messages/{full.ids.binary}").words
    with served(Console(full.dsn, local=Access.admin("ada"), payloads="show")) as browser:
        page = browser.get(f"/messages/{full.ids.binary}")
        assert "000010 10 11 12 13 14 15" in page.words
        assert "256 B" in page.words


def test_texts_of_strangers_stay_texts(seat: Browser, full: Full) -> None:
    for path in (f"/messages/{full.ids.hostile}", "/messages", "/channels", "/", "/turns", "/audit"):
        page = seat.get(path).text
        assert "<img src=x" not in page
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e]", page)
    shown = seat.get(f"/messages/{full.ids.hostile}").words
    assert r"</script><img src=x onerror=alert(1)>\u202egnp.exe \x1b[31m {{7*7}}" in shown
    assert HOSTILE not in shown


def test_secrets_of_payloads_and_errors_are_redacted(seat: Browser, full: Full) -> None:
    for path in (f"/messages/{full.ids.dead}", f"/messages/{full.ids.dead}.json", "/messages?q=status:failed",
                 "/messages.json?q=status:failed", f"/messages/{full.ids.waiting}",
                 f"/compare?a={full.ids.waiting}&b={full.ids.dead}"):  # fmt: skip
        answer = seat.get(path)
        assert answer.status == 200
        assert SECRET not in answer.text, path
    assert "redacted" in seat.get(f"/messages/{full.ids.dead}").words


def test_filters_of_subscriptions_name_no_value_of_a_secret_key(db: str) -> None:
    with Menzil(db) as mq:
        mq.create_event_type("paid", "An order was paid.")
        mq.create_endpoint("crm", "http", {"url": "https://crm.example/"})
        mq.subscribe("paid", "crm", filter={"card_number": "4111111111111111", "country": "NL"})
    tester = urlencode({"type": "paid", "payload": '{"card_number": "4111111111111111", "country": "NL"}'})
    with served(Console(db, local=Access("vic", "viewer"))) as browser:
        for path in ("/events", "/events.json", "/endpoints/crm", "/endpoints/crm.json"):
            answer = browser.get(path)
            assert answer.status == 200
            assert "NL" in answer.text
            assert "4111111111111111" not in answer.text, path
        found = browser.get(f"/events.json?{tester}").json["tested"]["subscriptions"]
        assert [(one["matches"], one["filter"]["card_number"]) for one in found] == [(True, MARK)]


def test_page_that_did_not_change_is_not_sent_again(seat: Browser) -> None:
    first = seat.get("/audit", X_Menzil_Live="1")
    assert first.status == 200
    assert '<nav class="places"' not in first.text, "an open page asks for its main part alone"
    tag = first.headers["ETag"]
    again = seat.get("/audit", X_Menzil_Live="1", If_None_Match=tag)
    assert (again.status, again.body) == (304, b"")
    assert re.fullmatch(r"\d\d:\d\d:\d\d \d+ \d+", again.headers["X-Menzil-As-Of"])


def test_search_line_is_in_the_url_and_goes_on(seat: Browser) -> None:
    page = seat.get("/messages?q=channel%3Abilling+status%3Apending")
    assert 'value="channel:billing status:pending"' in page.text
    assert "686" in page.words or "billing" in page.words
    (link,) = set(re.findall(r'href="(/messages\?[^"]*before=\d+)"', page.text))
    more = seat.get(link.replace("&amp;", "&"))
    shown = [set(re.findall(r'data-key="(\d+)"', one.text)) for one in (page, more)]
    assert all(len(ids) == 50 for ids in shown)
    assert not shown[0] & shown[1]


def test_wrong_search_line_is_answered_with_a_sentence(seat: Browser) -> None:
    page = seat.get("/messages?q=chanel%3Abilling")
    assert page.status == 200
    assert "There is no qualifier chanel:. Did you mean channel:?" in page.words


@pytest.mark.parametrize("way", ["mounted", "stripped", "kept"])
def test_every_page_works_below_a_prefix(full: Full, way: str) -> None:
    prefix = "/ops/queue"
    console = Console(full.dsn, local=Access.admin("ada"), prefix="" if way == "mounted" else prefix)
    app = Starlette(routes=[Mount(prefix, console)]) if way == "mounted" else console
    with served(app) as browser:
        for pattern, path in paths(full).items():
            answer = browser.get(path if way == "stripped" else prefix + path)
            is_page(answer)
            links = re.findall(r'(?:href|src|action|formaction)="([^"#]*)"', answer.text)
            outside = [link for link in links if not link.startswith(f"{prefix}/")]
            assert outside == [], (pattern, outside[:3])
        for asset in re.findall(r'(?:href|src)="(/ops/queue/static/[^"]+)"', browser.get(
            "/" if way == "stripped" else f"{prefix}/").text):  # fmt: skip
            served_at = asset.removeprefix(prefix) if way == "stripped" else asset
            assert browser.get(served_at).status == 200


@pytest.mark.parametrize("stripped", [True, False])
def test_pages_work_in_an_application_that_knows_the_prefix_of_its_proxy(full: Full, stripped: bool) -> None:
    """As FastAPI(root_path="/api") behind a proxy that strips /api, or keeps it."""
    app = Starlette(routes=[Mount("/queue", Console(full.dsn, local=Access.admin("ada")))])

    async def behind_proxy(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "root_path": "/api"}, receive, send)

    with served(behind_proxy) as browser:
        for path in ("/", "/channels", f"/messages/{full.ids.waiting}", "/overview.json"):
            answer = browser.get(f"/queue{path}" if stripped else f"/api/queue{path}")
            assert answer.status == 200, path
            links = re.findall(r'(?:href|src|action)="([^"#]*)"', answer.text)
            assert [link for link in links if not link.startswith("/api/queue/")] == []


def test_trace_of_a_message_is_a_link_where_the_console_knows_where_traces_are(seat: Browser, full: Full) -> None:
    trace = "ab" * 16
    assert f"Trace {trace}" in seat.get(f"/messages/{full.ids.retrying}").words
    with served(Console(full.dsn, local=Access.viewer("ada"), trace_url="https://t.example/{trace_id}")) as browser:
        assert "Trace" not in browser.get(f"/messages/{full.ids.retrying}").words.split("Life")[0], "metadata is hidden"
    with served(Console(full.dsn, local=Access.reader("ada"), trace_url="https://t.example/{trace_id}")) as browser:
        page = browser.get(f"/messages/{full.ids.retrying}").text
        assert f'<a href="https://t.example/{trace}" rel="noreferrer noopener"><bdi>{trace}</bdi></a>' in page


def test_a_completed_message_shows_each_try_once(seat: Browser, full: Full) -> None:
    twin = seat.get(f"/messages/{full.ids.completed}.json").json
    tries = [one["attempt"] for one in twin["attempts"]]
    assert tries == sorted(set(tries))
    assert twin["attempts"][-1]["outcome"] == "completed"


def test_page_of_a_message_shows_what_the_receiver_answered(seat: Browser, full: Full) -> None:
    page = seat.get(f"/messages/{full.ids.retrying}")
    assert page.status == 200
    assert "try 1 · HTTP 500" in page.words
    assert "Response body out of shelves" in page.words


def test_a_draft_with_an_old_count_is_a_whole_page_that_says_so(seat: Browser, full: Full) -> None:
    """Its notice is no failed part, for otherwise the page would be asked for again and again."""
    older = "update menzil.plan set created_at = created_at %s interval '11 minutes' where id = %s"
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        conn.execute((older % ("-", full.ids.plan)).encode())
        try:
            with served(Console(full.dsn, local=Access.reader("ada"))) as browser:  # that has kept no answer
                answer = browser.get(f"/plans/{full.ids.plan}")
            is_page(answer)
            assert "The count is older than 10 minutes." in answer.words
            assert 'class="notice"' in answer.text
        finally:
            conn.execute((older % ("+", full.ids.plan)).encode())


def test_plan_for_one_cause_tells_its_text_without_secrets(db: str) -> None:
    with Menzil(db) as mq, psycopg.connect(db, autocommit=True) as conn:
        mq.channel_set("crm")
        mq.send("crm", {"order": 1})
        (message,) = mq.dequeue(channels="crm")
        mq.fail(message, f"connect timed out after 10 s password={SECRET}", permanent=True)
        row = conn.execute("select cause_hash from menzil.dlq").fetchone()
        assert row is not None
        made = conn.execute("select menzil.plan_create('redrive', jsonb_build_object('cause_hash', %s::text))", row)
        (plan,) = made.fetchone() or (0,)
        with served(Console(db, local=Access.operator("ada"))) as browser:
            answer = browser.get(f"/plans/{plan}")
            is_page(answer)
            assert re.search(rf'<a href="/dead/{row[0]}"><bdi>connect timed out', answer.text), answer.words
            assert SECRET not in answer.text
        conn.execute("delete from menzil.dead_letter")
        with served(Console(db, local=Access.operator("ada"))) as browser:
            assert f"the dead letters of {row[0]}" in browser.get(f"/plans/{plan}").words


def test_role_that_may_not_read_dead_letters_sees_a_plan_with_the_hash_of_its_cause(full: Full) -> None:
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        row = conn.execute(
            "select menzil.plan_create('redrive', jsonb_build_object('cause_hash', %s::text))", (full.ids.cause,)
        ).fetchone()
        assert row is not None
        conn.execute("create role plan_watcher login password 'x' in role menzil_monitor")
        try:
            dsn = make_conninfo(full.dsn, user="plan_watcher", password="x")
            with served(Console(dsn, local=Access.admin("ada"))) as browser:
                answer = browser.get(f"/plans/{row[0]}")
            is_page(answer)
            assert f"the dead letters of {full.ids.cause}" in answer.words
        finally:
            conn.execute("drop role plan_watcher")
            conn.execute("select menzil.plan_stop(%s)", row)
            conn.execute("delete from menzil.plan where id = %s", row)


def test_bridge_is_resumed_and_paused_from_its_row_by_those_who_may(full: Full) -> None:
    with served(Console(full.dsn, local=Access.operator("ada"))) as browser:
        assert 'href="/acts/bridge-resume?bridge=orders"' in browser.get("/bridges").text
    with served(Console(full.dsn, local=Access.reader("ada"))) as browser:
        assert "/acts/bridge-" not in browser.get("/bridges").text
