"""The door: who gets in, from where, with which forms; and what every answer carries."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from starlette.requests import Request

from menzil.console import Access, Console
from menzil.console.guards import POLICY
from menzil.console.sessions import IDLE, LIFE
from menzil.console.signing import Signer
from menzil.console.tokens import make
from tests.console.conftest import Full
from tests.console.furnished import SECRET
from tests.console.paths import paths
from tests.console.seat import Browser, served

NAMES = ("viewer", "reader", "operator", "admin")
TOKENS = {role: make(role, role) for role in NAMES}


@pytest.fixture(scope="module")
def closed(full: Full) -> Iterator[int]:
    """The port of a console with a token for each role."""
    with served(Console(full.dsn, tokens=[line for _, line in TOKENS.values()], secret="of the tests")) as browser:
        yield browser.port


def logged_in(port: int, role: str) -> Browser:
    browser = Browser(port)
    answer = browser.post("/login", {"token": TOKENS[role][0], "next": "/workers"})
    assert (answer.status, answer.headers["Location"]) == (303, "/workers")
    return browser


@pytest.mark.parametrize("path", ["/", "/nowhere", "/login", "/healthz", "/static/console.css", "/messages.json"])
def test_every_answer_carries_the_headers(closed: int, path: str) -> None:
    headers = Browser(closed).get(path).headers
    assert headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert "Server" not in headers


def test_policy_is_the_strict_one() -> None:
    assert POLICY == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types menzil"
    )


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.evil"])
def test_other_names_are_not_answered_to(seat: Browser, host: str) -> None:
    answer = seat.get("/workers", Host=host)
    assert answer.status == 400
    assert "batch-1" not in answer.text


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "[::1]:99", "127.0.0.1:5"])
def test_names_of_this_machine_are_answered_to(seat: Browser, host: str) -> None:
    assert seat.get("/workers", Host=host).status == 200


def test_console_behind_a_proxy_answers_to_the_name_it_was_told(full: Full) -> None:
    with served(Console(full.dsn, local=Access.viewer("ada"), hosts=["queue.example.com"])) as browser:
        assert browser.get("/workers", Host="queue.example.com").status == 200
        assert browser.get("/workers", Host="queue.example.org").status == 400


def test_nobody_sees_a_page_without_a_token(closed: int, full: Full) -> None:
    for path in paths(full).values():
        answer = Browser(closed).get(path)
        assert answer.status == 303
        assert answer.headers["Location"].startswith("/login?next=")
    assert Browser(closed).get("/messages.json").status == 401
    assert Browser(closed).get("/", X_Menzil_Live="1").status == 401


def test_login_leads_to_the_page_that_was_asked_for_and_logout_ends_it(closed: int) -> None:
    browser = logged_in(closed, "reader")
    page = browser.get("/workers")
    assert page.status == 200
    assert "reader" in page.words
    kept = dict(browser.cookies)
    assert browser.post("/logout", {"csrf": "wrong"}).status == 403
    assert browser.post("/logout", {"csrf": page.field("csrf")}).status == 303
    assert browser.cookies == {}
    again = Browser(closed, kept)
    assert again.get("/workers").status == 303, "a session that ended does not come back with its cookie"


def test_cookie_is_kept_from_scripts_and_other_sites(closed: int) -> None:
    browser = Browser(closed)
    answer = browser.post("/login", {"token": TOKENS["viewer"][0]})
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"menzil-{closed}=")
    assert {"HttpOnly", "SameSite=strict", "Path=/", f"Max-Age={LIFE}"} <= {part.strip() for part in cookie.split(";")}
    secure = browser.post("/login", {"token": TOKENS["viewer"][0]}, **{"X-Forwarded-Proto": "https"})
    assert secure.headers["Set-Cookie"].startswith("__Host-menzil=")
    assert "Secure" in secure.headers["Set-Cookie"]


@pytest.mark.parametrize("change", [{"seen": IDLE + 60}, {"began": LIFE + 60, "seen": 1}])
def test_session_ends_when_its_time_is_over(closed: int, change: dict[str, int]) -> None:
    mark = hashlib.sha256(TOKENS["admin"][0].encode()).hexdigest()[:16]
    now = int(time.time())
    session = {"id": "x" * 24, "mark": mark, "began": now - 5, "seen": now - 5}
    fresh = Signer("of the tests").seal("session", session)
    assert Browser(closed, {f"menzil-{closed}": fresh}).get("/workers").status == 200
    old = session | {name: now - ago for name, ago in change.items()}
    sealed = Signer("of the tests").seal("session", old)
    assert Browser(closed, {f"menzil-{closed}": sealed}).get("/workers").status == 303


def test_forged_cookie_opens_nothing(closed: int) -> None:
    browser = logged_in(closed, "viewer")
    name, value = next(iter(browser.cookies.items()))
    body, _, signature = value.partition(".")
    for forged in (f"{body}.", f"{body}.{signature[::-1]}", f"{body[:-2]}xx.{signature}", "a.b", "", "." * 9, "é"):
        assert Browser(closed, {name: forged}).get("/workers").status == 303
    other = Signer("another secret").seal("session", {"id": "x", "mark": "y", "began": 1, "seen": 1})
    assert Browser(closed, {name: other}).get("/workers").status == 303


def test_session_ends_when_its_token_is_taken_off_the_list(full: Full, closed: int) -> None:
    browser = logged_in(closed, "admin")
    lines = [line for role, (_, line) in TOKENS.items() if role != "admin"]
    with served(Console(full.dsn, tokens=lines, secret="of the tests")) as after:
        kept = {f"menzil-{after.port}": next(iter(browser.cookies.values()))}
        assert Browser(after.port, kept).get("/workers").status == 303
        reader = {f"menzil-{after.port}": next(iter(logged_in(closed, "reader").cookies.values()))}
        assert Browser(after.port, reader).get("/workers").status == 200


def test_five_failures_a_minute_and_the_address_waits(full: Full) -> None:
    with served(Console(full.dsn, tokens=[TOKENS["viewer"][1]])) as browser:
        statuses = [browser.post("/login", {"token": f"wrong {number}"}).status for number in range(7)]
        assert statuses == [401] * 5 + [429] * 2
        refused = browser.post("/login", {"token": TOKENS["viewer"][0]})
        assert refused.status == 429, "the right token, too: a guess must not be told from a token"
        assert refused.headers["Retry-After"] == "60"


def test_programs_read_twins_with_a_bearer_token_and_send_no_forms(closed: int) -> None:
    browser = Browser(closed)
    header = {"Authorization": f"Bearer {TOKENS['reader'][0]}"}
    answer = browser.ask("GET", "/workers.json", headers=header)
    assert answer.status == 200
    assert browser.cookies == {}
    assert browser.ask("GET", "/workers.json", headers={"Authorization": "Bearer wrong"}).status == 401
    assert browser.ask("GET", "/workers.json", headers={"Authorization": "Basic wrong"}).status == 401
    act = browser.post("/acts/channel-pause", {"channel": "billing"}, Authorization=f"Bearer {TOKENS['admin'][0]}")
    assert act.status == 303
    assert act.headers["Location"].startswith("/login")


def test_token_list_is_no_way_in(full: Full) -> None:
    line = TOKENS["admin"][1]
    with served(Console(full.dsn, tokens=[line])) as browser:
        for given in (line, line.split(":")[2], "", "admin"):
            assert browser.post("/login", {"token": given}).status == 401


@pytest.mark.parametrize(
    "wanted", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "\\\\x"]
)
def test_login_leads_nowhere_else(full: Full, wanted: str) -> None:
    with served(Console(full.dsn, tokens=[TOKENS["viewer"][1]])) as browser:
        answer = browser.post("/login", {"token": TOKENS["viewer"][0], "next": wanted})
        assert answer.headers["Location"] == "/"
        assert browser.get("/theme/dark?next=//evil.example").headers["Location"] == "/"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"Sec-Fetch-Site": ""}, 303),
        ({"Origin": ""}, 303),
        ({"Origin": "null"}, 303),
        ({"Origin": "", "Sec-Fetch-Site": ""}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": ""}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
    ],
)
def test_form_of_another_site_is_refused(closed: int, headers: dict[str, str], status: int) -> None:
    assert Browser(closed).post("/login", {"token": TOKENS["viewer"][0]}, **headers).status == status


def test_what_is_too_large_or_no_form_is_refused(closed: int) -> None:
    browser = Browser(closed)
    assert browser.post("/login", {"token": "x" * 1_100_000}).status == 413
    assert browser.post("/login", {"token": "x"}, **{"Content-Type": "application/json"}).status == 415
    assert browser.post("/login", {f"f{number}": "" for number in range(1_100)}).status == 400
    chunked = {
        "Transfer-Encoding": "chunked",
        "Origin": f"http://{browser.name}",
        "Content-Type": "application/x-www-form-urlencoded",
    }
    piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    assert browser.ask("POST", "/login", piece * 2 + b"0\r\n\r\n", chunked).status == 413


@pytest.mark.parametrize("role", NAMES)
def test_roles_see_and_do_what_they_may(closed: int, full: Full, role: str) -> None:
    browser = logged_in(closed, role)
    page = browser.get(f"/messages/{full.ids.dead}")
    twin = browser.get(f"/messages/{full.ids.dead}.json")
    assert SECRET not in page.text + twin.text
    sees = role != "viewer"
    assert ("customer" in page.words) == sees
    assert (twin.json["payload"] is not None) == sees
    assert ("Your role does not see payloads" in page.words) == (not sees)
    may_act = role in ("operator", "admin")
    assert ("/acts/" in browser.get("/channels/billing").text) == may_act
    assert browser.get("/acts/channel-pause?channel=billing").status == (200 if may_act else 403)
    assert browser.get("/compare").status == (200 if sees else 403)


def test_viewer_sees_no_error_text_and_no_response(closed: int, full: Full) -> None:
    browser = logged_in(closed, "viewer")
    twin = browser.get(f"/messages/{full.ids.dead}.json").json
    assert twin["last_error"] is None
    assert [one["error"] for one in twin["attempts"]] == [None]
    assert "moved" not in browser.get(f"/messages/{full.ids.dead}").words
    assert {row["last_error"] for row in browser.get("/messages.json?q=status:failed").json["messages"]} == {None}


def test_payloads_are_shown_as_they_are_only_where_both_allow_it(full: Full) -> None:
    lines = [line for _, line in TOKENS.values()]
    with served(Console(full.dsn, tokens=lines, payloads="show")) as browser:
        shown = {role: SECRET in logged_in(browser.port, role).get(f"/messages/{full.ids.dead}").text for role in NAMES}
        assert shown == {"viewer": False, "reader": False, "operator": True, "admin": True}
    with served(Console(full.dsn, tokens=lines, payloads="hide")) as browser:
        page = logged_in(browser.port, "admin").get(f"/messages/{full.ids.dead}")
        assert "customer" not in page.words


def test_mounted_console_lets_nobody_in_by_itself(full: Full) -> None:
    with served(Console(full.dsn)) as browser:
        for path in paths(full).values():
            assert browser.get(path).status == 403
        assert browser.get("/workers.json").status == 403
        assert browser.get("/healthz").status == 200


def test_application_says_who_comes_in(full: Full) -> None:
    async def authorize(request: Request) -> Access | None:
        name = request.headers.get("x-user")
        return Access.operator(name) if name else None

    with served(Console(full.dsn, authorize=authorize)) as browser:
        assert browser.get("/workers").status == 403
        assert browser.get("/workers", Host="any.example", X_User="ada").status == 200
        assert browser.get("/login").status == 404, "the application has its own"
    with served(Console(full.dsn, authorize=lambda request: True)) as browser:  # type: ignore[arg-type,return-value]
        assert browser.get("/workers").status == 403, "anything but an Access is no"


def test_read_only_console_has_no_acts(full: Full) -> None:
    with served(Console(full.dsn, local=Access.admin("ada"), read_only=True)) as browser:
        for path in paths(full).values():
            page = browser.get(path)
            assert page.status == 200
            assert "/acts/" not in page.text
        assert browser.get("/acts/channel-pause?channel=billing").status == 404
        for path in ("/acts/channel-pause", "/acts/channel-pause/do", "/nowhere"):
            assert browser.post(path, {"channel": "billing"}).status == 403


def test_nothing_on_a_page_is_inline(seat: Browser, full: Full) -> None:
    for path in [*paths(full).values(), "/acts/channel-pause?channel=billing", "/nowhere"]:
        found = Tags(seat.get(path).text)
        assert found.names & {"style", "iframe", "object", "embed", "base", "meta http-equiv"} == set()
        assert [name for name in found.attributes if name == "style" or name.startswith("on")] == [], path
        assert [link for link in found.links if ":" in link.split("/")[0]] == [], path
        assert [src for src in found.scripts if not src.startswith("/static/console.js?v=")] == []


class Tags(HTMLParser):
    """What a browser would find on a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.links += [value or "" for name, value in attrs if name in ("href", "action", "formaction")]
        self.scripts += [dict(attrs).get("src") or ""] if tag == "script" else []


def menzil(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "menzil", "console", *words], capture_output=True, text=True, timeout=60
    )


def test_listening_elsewhere_without_a_token_is_refused(full: Full) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "queue.example.com"):
        answer = menzil("--dsn", full.dsn, "--host", host)
        assert answer.returncode == 2
        assert "there is no token" in answer.stderr
        assert "--new-token" in answer.stderr


def test_new_token_is_printed_with_its_line() -> None:
    answer = menzil("--new-token", "ada:operator")
    token, line = answer.stdout.split()
    assert line == f"ada:operator:{hashlib.sha256(token.encode()).hexdigest()}"
    assert menzil("--new-token", "ada:king").returncode == 2
    assert menzil("--new-token", "ada").returncode == 2


def test_token_that_is_no_digest_is_refused_and_not_repeated(full: Full) -> None:
    answer = menzil("--dsn", full.dsn, "--token", "ada:admin:my-secret-token", "--port", "0")
    assert answer.returncode == 2
    assert "my-secret-token" not in answer.stderr + answer.stdout
