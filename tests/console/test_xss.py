"""Attacks in every field a stranger can fill, before every page, fragment, twin and act: they stay texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page

from menzil.cli import main
from menzil.console import Access, Console
from menzil.console.tokens import make
from tests.console import hostile_paths
from tests.console.attacks import ALL, ATTACKS, TEXTS
from tests.console.chromium import IN_CHROMIUM, Watched, at, watched
from tests.console.doing import confirm, planned
from tests.console.hostile import RULED, Hostile
from tests.console.seat import Browser, served
from tests.console.test_lake import make_lake

HERE = Path(__file__).parent
CREATED = (HERE / "created.js").read_text().split("\n", 2)[2]
#: Elements in which Chromium itself shows a document that is not HTML.
BARE = {"html", "head", "meta", "body", "pre", "div"}
#: Attacks that are in one address together.
CHUNKS = ["\n".join(TEXTS[start : start + 10]) for start in range(0, len(TEXTS), 10)]

pytestmark = IN_CHROMIUM


@pytest.fixture(scope="module")
def console(hostile: Hostile, tmp_path_factory: pytest.TempPathFactory) -> Console:
    lake = tmp_path_factory.mktemp("lake") / "<img zz src=x onerror=window.ran=1>"
    number = hostile.dead[0]
    with psycopg.connect(hostile.dsn) as conn:
        row = conn.execute("select channel, created_at from menzil.archive where id = %s", (number,)).fetchone()
    assert row is not None
    make_lake(hostile.dsn, lake, row[0], [number], row[1].astimezone(UTC))
    return Console(
        hostile.dsn, local=Access.admin(TEXTS[0]), payloads="show", lake=str(lake), metrics_open=True,
        trace_url="https://traces.example/{trace_id}",
    )  # fmt: skip


@pytest.fixture(scope="module")
def seat(console: Console) -> Iterator[Browser]:
    """An admin whose name is an attack, before a queue full of them."""
    with served(console) as browser:
        yield browser


@pytest.fixture(scope="module")
def eyes(chromium: Chromium) -> Iterator[Watched]:
    """One page for all visits; what it complained of, and where it wanted to go, fails a test."""
    with watched(chromium) as seen:
        yield seen


def visit(eyes: Watched, seat: Browser, path: str) -> Page:
    """Open a page of the console, and find nothing on it that is not ours."""
    page = eyes.page
    page.goto(at(seat, path))
    look(eyes, path)
    return page


def look(eyes: Watched, path: str) -> None:
    assert eyes.page.evaluate(CREATED) == [], path
    assert eyes.complaints == [], path
    assert eyes.outside == [], path


def is_inert(eyes: Watched, path: str, bare: set[str]) -> None:
    """A document that the browser shows by itself: it made no other elements than its own."""
    tags = set(eyes.page.evaluate("[...document.querySelectorAll('*')].map((one) => one.localName)"))
    assert tags <= bare, path
    assert eyes.page.evaluate("window.ran") is None, path
    assert (eyes.complaints, eyes.outside) == ([], []), path


def test_attacks_are_many_and_each_is_one(eyes: Watched) -> None:
    assert len(TEXTS) >= 25
    assert len(set(TEXTS)) == len(TEXTS)
    page = eyes.page
    page.goto("about:blank")
    loud = [
        page.evaluate(CREATED, {"origin": "http://x", "texts": [f'<a title="{text}">{text}</a>']}) for text in TEXTS
    ]
    harmless = {name for name, found in zip(ATTACKS, loud, strict=True) if not found}
    assert harmless == {
        "address that is a script", "address that is a script, disguised", "attribute without quotes", "entities",
        "entities twice", "letters that grow", "single quote", "template of a script", "template of jinja",
        "wide brackets",
    }, "these need a page that makes addresses, attributes, templates or other letters of them"  # fmt: skip


@pytest.mark.parametrize("what", RULED)
def test_what_has_rules_takes_no_attack(hostile: Hostile, what: str) -> None:
    assert hostile.refused[what].keys() == ATTACKS.keys()
    assert set(hostile.refused[what].values()) <= {"22023", "22P02", "42704"}


def test_every_page_and_twin_of_the_router_shows_attacks_as_texts(
    eyes: Watched, seat: Browser, hostile: Hostile, console: Console
) -> None:
    """Lists hold all attacks; pages about one thing meet another attack for each pattern, and all of them below."""
    for turn, (pattern, addresses) in enumerate(hostile_paths.pages(hostile, console).items()):
        address = addresses[(turn * 7) % len(addresses)]
        if pattern.endswith(".json"):
            eyes.page.goto(at(seat, address))
            assert eyes.page.evaluate("document.contentType") == "application/json", address
            is_inert(eyes, address, BARE)
            continue
        page = visit(eyes, seat, address)
        if page.get_attribute("body", "data-live") != "0":
            page.evaluate("document.querySelector('main').append(document.createElement('hr'))")
            page.keyboard.press(".")
            page.wait_for_selector("hr", state="detached")  # the page has looked again
            look(eyes, address)


def test_place_in_a_lake_shows_attacks_as_texts(eyes: Watched, seat: Browser, hostile: Hostile) -> None:
    page = visit(eyes, seat, f"/messages/{hostile.dead[0]}")
    assert "<img zz src=x onerror=window.ran=1>" in page.inner_text("#lake")


def test_catalog_answers_attacks_with_json(eyes: Watched, seat: Browser) -> None:
    for number, attack in enumerate(TEXTS):
        name = quote(attack, safe="")
        path = ("", f"/{name}", f"/{name}/tables", f"/menzil/tables/{name}")[number % 4]
        answer = seat.get(f"/iceberg/v1/namespaces{path}")
        assert answer.status in (200, 404), path
        assert answer.headers["Content-Type"] == "application/json", path
        assert answer.headers["X-Content-Type-Options"] == "nosniff", path
    for path in ("config", "namespaces", f"namespaces/{quote(TEXTS[0], safe='')}", "namespaces/menzil/tables"):
        eyes.page.goto(at(seat, f"/iceberg/v1/{path}"))
        assert eyes.page.evaluate("document.contentType") == "application/json", path
        is_inert(eyes, path, BARE)


def swept(eyes: Watched, seat: Browser, addresses: list[str]) -> list[int]:
    """Fragments of pages, parsed as an open page parses them; what is made of them counts, whether or not it runs."""
    answers = [seat.get(address, X_Menzil_Live="1") for address in addresses]
    for address, answer in zip(addresses, answers, strict=True):
        assert answer.status in (200, 400, 404), address
        assert answer.headers["Content-Type"].startswith("text/html"), address
    given = {"origin": at(seat, ""), "texts": [answer.text for answer in answers]}
    assert eyes.page.evaluate(CREATED, given) == [], addresses
    return [answer.status for answer in answers]


def test_every_attack_as_the_name_or_text_of_one_thing(eyes: Watched, seat: Browser, hostile: Hostile) -> None:
    eyes.page.goto("about:blank")
    for pattern, places in hostile_paths.values(hostile).items():
        addresses = [re.sub(r"\{\w+\}", place, pattern) for place in places]
        assert set(swept(eyes, seat, addresses)) == {200}, pattern


def test_every_attack_in_every_word_of_a_query(eyes: Watched, seat: Browser) -> None:
    eyes.page.goto("about:blank")
    for chunk in CHUNKS:
        swept(
            eyes, seat, [path for pattern, path in hostile_paths.asked(chunk).items() if not pattern.endswith(".json")]
        )
    for pattern, path in hostile_paths.asked(CHUNKS[3]).items():
        if pattern.endswith(".json"):
            answer = seat.get(path)
            assert answer.headers["Content-Type"] == "application/json", pattern
            json.loads(answer.text)


def test_words_of_queries_are_all_known() -> None:
    source = "".join(file.read_text() for file in (HERE.parents[1] / "src/menzil/console/pages").glob("*.py"))
    read = set(re.findall(r'(?:look\.(?:text|number)|query\.get|words\.get)\("(\w+)"', source))
    assert read <= set(hostile_paths.WORDS)


def test_search_box_takes_every_attack(eyes: Watched, seat: Browser) -> None:
    page = visit(eyes, seat, "/workers")
    for text in (ATTACKS["double quote"], ATTACKS["search line"], ATTACKS["end of a title"]):
        page.fill("#find", text)
        page.press("#find", "Enter")
        page.wait_for_url("**/messages?q=*")
        assert page.input_value("#q") == text
        look(eyes, text)


def test_form_and_plan_of_every_act_show_attacks_as_texts(eyes: Watched, seat: Browser) -> None:
    eyes.page.goto("about:blank")
    texts = []
    for turn, chunk in enumerate(CHUNKS):
        for act, fields in list(hostile_paths.acts(chunk).items())[turn % 2 :: 2]:
            form = seat.get(f"/acts/{act}?{urlencode(fields | {'edit': '1'})}")
            texts.append(form.text)
            if turn < 2:
                sent = seat.post(f"/acts/{act}", fields | {"csrf": form.field("csrf")})
                assert sent.status == 400, act
                texts.append(sent.text)
    assert eyes.page.evaluate(CREATED, {"origin": at(seat, ""), "texts": texts}) == []


def test_form_that_a_person_fills_with_an_attack_stays_a_form(eyes: Watched, seat: Browser) -> None:
    page = visit(eyes, seat, f"/acts/send?{urlencode({'channel': ATTACKS['double quote']})}")
    for name in ("payload", "ordering_key", "headers", "metadata"):
        page.fill(f"#f-{name}", ATTACKS["end of a text area"])
    page.click(".form button.main")
    page.wait_for_selector("p.trouble")
    assert page.input_value("#f-payload") == ATTACKS["end of a text area"]
    look(eyes, "send")


#: Acts on things whose names are attacks, whose results are pages, too.
DONE = {
    "channel-pause": {"channel": TEXTS[5]},
    "endpoint-disable": {"endpoint": f"{TEXTS[6]}."},
    "endpoint-alter": {"endpoint": f"{TEXTS[7]}.", "config": json.dumps({"url": "https://b.example/javascript:x"})},
    "schedule-run": {"schedule": TEXTS[8]},
    "schedule-drop": {"schedule": TEXTS[9]},
    "schedule-create": {"schedule": f"{TEXTS[9]}!", "cron": "0 * * * *", "time_zone": "UTC", "channel": TEXTS[9],
                        "payload": json.dumps(ALL), "priority": "1"},
    "plan-redrive": {"endpoint": TEXTS[10], "note": ALL[:900]},
    "setting-set": {"setting": "redact", "value": "password, \"'><img zz src=x onerror=window.ran=1>"},
    "send": {"channel": TEXTS[12], "payload": json.dumps({ALL: ALL}), "ordering_key": TEXTS[13], "headers": "{}",
             "idempotency_key": TEXTS[14], "metadata": json.dumps({"a": ALL})},
    "publish": {"event_type": TEXTS[15], "payload": json.dumps({TEXTS[15]: TEXTS[15]})},
}  # fmt: skip


@pytest.mark.parametrize("act", DONE)
def test_plan_and_result_of_an_act_on_an_attack_show_it_as_a_text(eyes: Watched, seat: Browser, act: str) -> None:
    eyes.page.goto("about:blank")
    plan = planned(seat, act, **DONE[act])
    done = confirm(seat, plan)
    assert done.status == 200, done.words[:500]
    assert 'class="what"' in done.text, done.words[:500]
    given = {"origin": at(seat, ""), "texts": [plan.page.text, done.text]}
    assert eyes.page.evaluate(CREATED, given) == []


def test_pages_of_those_who_are_not_let_in_show_attacks_as_texts(eyes: Watched, hostile: Hostile) -> None:
    with served(Console(hostile.dsn, tokens=[make("ada", "viewer")[1]])) as closed:
        for text in (ATTACKS["double quote"], ATTACKS["address that is a script"]):
            visit(eyes, closed, "/")
            page = visit(eyes, closed, f"/login?next={quote(text)}")
            page.fill("#token", text)
            page.click("button.main")
            page.wait_for_url("**/login")
            assert "not on the list" in page.inner_text("main")
            look(eyes, text)


def test_metrics_are_a_text(eyes: Watched, seat: Browser) -> None:
    eyes.page.goto(at(seat, "/metrics"))
    assert eyes.page.evaluate("document.contentType") == "text/plain"
    assert "zz" in eyes.page.inner_text("body")
    is_inert(eyes, "/metrics", BARE)


@pytest.mark.parametrize("words", ["show", "report"])
def test_files_to_attach_show_attacks_as_texts(
    chromium: Chromium, hostile: Hostile, tmp_path: Path, words: str
) -> None:
    file = tmp_path / "page.html"
    made = {
        "show": ["message", "show", str(hostile.dead[3]), "--html", str(file)],
        "report": ["report", "--out", str(file)],
    }[words]
    answer = CliRunner().invoke(main, [*made, "--dsn", hostile.dsn])
    assert answer.exit_code == 0, answer.output
    assert "window.ran" in file.read_text()
    with watched(chromium) as seen:
        seen.page.goto(file.as_uri())
        strange = "document.querySelectorAll('[zz], script, img, iframe, form, base, link, a[href]').length"
        assert seen.page.evaluate(strange) == 0
        handlers = "[...document.querySelectorAll('*')].flatMap((one) => [...one.attributes].map((at) => at.name))"
        assert [name for name in seen.page.evaluate(handlers) if name.startswith("on") or name == "zz"] == []
        assert seen.page.evaluate("window.ran") is None
        assert seen.requests == [file.as_uri()]
