"""The small pieces of the console, and rules that its templates, sheet and script keep."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menzil.console.act import Plan
from menzil.console.failures import MOST, Failures
from menzil.console.guards import joined
from menzil.console.hosts import Hosts, bare, is_loopback
from menzil.console.render import HERE, environment
from menzil.console.signing import Signer
from menzil.console.texts import HIDDEN, link, plain, said, slug, typed, unslug
from menzil.console.tokens import make, read_tokens
from menzil.console.tree import MOST as MOST_VALUES
from menzil.console.tree import tree
from menzil.console.words import relative, span
from menzil.model.errors import UsageError
from menzil.ops import channels
from menzil.ops.op import Op
from menzil.ops.seat import shown
from tests.console.conftest import Full

TEMPLATES = sorted((HERE / "templates").glob("*.html"))
NAMES = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=40)  # type: ignore[arg-type]


@given(NAMES)
def test_every_name_fits_one_segment_of_a_path_and_comes_back(name: str) -> None:
    from urllib.parse import unquote

    segment = slug(name)
    assert "/" not in segment
    assert segment not in (".", "..")
    assert not segment.endswith(".json")
    assert unslug(unquote(segment)) == name


@given(st.text(st.characters(), max_size=200))
def test_no_text_of_a_stranger_moves_a_cursor_or_ends_an_element(text: str) -> None:
    for made in (str(said(text)), str(said(text, 20)), str(link(text)), str(tree({text: [text]}))):
        assert not HIDDEN.search(made)
        inside = re.sub(
            r'</?(?:bdi|a|ul|li|span|details|summary)(?: (?:title|href|rel|class)="[^"]*"| open)*>', "", made
        )
        assert "<" not in inside
    assert plain(plain(text)) == plain(text)


def test_options_of_a_command_are_not_torn_at_their_hyphens() -> None:
    made = str(typed("menzil dlq redrive --endpoint <b> --yes"))
    assert '<span class="nowrap">--endpoint</span> &lt;b&gt; <span class="nowrap">--yes</span>' in made
    assert unescape(re.sub("<[^>]+>", "", made)) == "menzil dlq redrive --endpoint <b> --yes"
    assert "nowrap" not in str(typed("--filter=" + "x" * 40))


@pytest.mark.parametrize(
    "text", ["javascript:alert(1)", "data:text/html,x", "//evil.example", "ftp://x", "https://", "http://[", "x"]
)
def test_only_addresses_of_the_web_become_links(text: str) -> None:
    assert "<a " not in link(text)


def test_link_tells_nobody_where_it_was_found() -> None:
    assert str(link("https://example.com/?a=1&b")) == (
        '<a href="https://example.com/?a=1&amp;b" rel="noreferrer noopener"><bdi>https://example.com/?a=1&amp;b</bdi></a>'
    )


def test_deep_and_long_documents_are_drawn_in_bounds() -> None:
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    assert str(tree(deep)).count("<details") <= 60
    assert str(tree(list(range(10_000)))).count("<li>") <= MOST_VALUES
    assert "Cut after 2,000 values" in str(tree(list(range(10_000))))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_switches_escaping_off_or_holds_a_script(template: Path) -> None:
    text = template.read_text()
    assert not re.search(r"\|\s*safe\b|autoescape|Markup|<style|\sstyle=|\son[a-z]+=|javascript:", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))
    assert not re.search(r'(?:href|src|action)="/', text), "every path begins with the prefix: url(…)"
    environment().get_template(template.name)


def test_script_is_small_and_neither_file_loads_anything() -> None:
    assert len((HERE / "static" / "console.js").read_bytes()) <= 8 * 1024
    for name in ("console.js", "console.css"):
        text = (HERE / "static" / name).read_text()
        assert not re.search(r"https?://|@import|url\(|\beval\b|new Function|innerHTML|document\.write", text), name


@pytest.mark.parametrize(
    ("op", "text"),
    [
        (channels.channel_pause("it's"), "select menzil.channel_pause('it''s'::text);"),
        (Op("select %s::text, %s::int, 5 %% 2", ("a\\b", None), id), "select E'a\\\\b'::text, null::int, 5 % 2;"),
        (Op("select %b", (b"\x00\xff",), id), "select '\\x00ff';"),
    ],
)
def test_statement_of_a_plan_is_the_one_that_runs(op: Op[object], text: str) -> None:
    assert shown(op) == text


@settings(deadline=None)  # a busy machine is no fault
@given(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=50))  # type: ignore[arg-type]
def test_shown_statement_means_the_same_to_the_database(full: Full, value: str) -> None:
    with psycopg.connect(full.dsn, autocommit=True) as conn:
        row = conn.execute(shown(Op("select %s::text", (value,), id)).encode()).fetchone()
        assert row == (value,)


def test_names_of_this_machine() -> None:
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.0.0.1", "localhost.example", "")))
    assert [bare(host) for host in ("A.b:80", "[::1]:9", "::1", "x")] == ["a.b", "::1", "::1", "x"]
    assert Hosts(None).allows("anything")
    assert Hosts(["Queue.example"]).allows("queue.example.:443")


def test_failures_are_counted_by_address_and_network() -> None:
    failures = Failures()
    for _ in range(MOST):
        failures.add("2001:db8::1")
    assert failures.wait("2001:db8::ffff") > 0
    assert failures.wait("2001:db8:0:1::1") == 0
    for number in range(20_000):
        failures.add(f"10.0.{number // 256}.{number % 256}")
    assert len(failures._times) <= 10_000


def test_sealed_text_opens_only_for_its_purpose() -> None:
    signer = Signer("a")
    sealed = signer.seal("plan x", {"n": 1})
    assert signer.open("plan x", sealed) == {"n": 1}
    assert signer.open("plan y", sealed) is None
    assert Signer("b").open("plan x", sealed) is None
    assert Signer().open("plan x", Signer().seal("plan x", 1)) is None, "each process has a key of its own"
    assert "a" not in repr(signer).split("(")[1]


def test_token_list_says_what_is_wrong_with_it() -> None:
    line = make("ada", "viewer")[1]
    assert [token.access.name for token in read_tokens(["# people", "", line])] == ["ada"]
    for wrong in (
        ["ada"],
        ["ada:viewer:abc"],
        [line.replace("viewer", "king")],
        [line, line],
        [f":{line.split(':', 1)[1]}"],
    ):
        with pytest.raises(UsageError):
            read_tokens(wrong)


def test_plan_notices_that_its_count_moved() -> None:
    assert not Plan("", "", count=110).moved(100)
    assert Plan("", "", count=111).moved(100)
    assert Plan("", "", count=0).moved(5)
    assert not Plan("", "").moved(None)
    assert Plan("", "", count=1_001).must_type
    assert not Plan("", "", count=1_000).must_type


def test_checked_boxes_are_one_field() -> None:
    assert joined([("ids", "1"), ("ids", "2"), ("q", "")]) == {"ids": "1,2", "q": ""}


@pytest.mark.parametrize(
    ("seconds", "words"), [(-90, "90 s ago"), (-150, "2 min ago"), (-7_300, "2 h ago"), (200_000, "in 2 d"), (0, "now")]
)
def test_times_are_told_from_now(seconds: int, words: str) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert relative(now + timedelta(seconds=seconds), now) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(None, "–"), (0.0042, "4.2 ms"), (0.25, "0.2 s"), (61, "1 min 1 s"), (90_000, "1 d 1 h")]
)
def test_spans_have_two_units_at_most(seconds: float | None, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize("missing", ["starlette", "jinja2", "uvicorn"])
def test_missing_extra_is_one_sentence_with_the_pip_line(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from menzil.cli import main; main(['console'])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert answer.returncode == 2, answer.stderr
    assert f"The console needs the package {missing}" in answer.stderr
    assert "pip install 'menzil[console]'" in answer.stderr


def test_mounted_console_ends_with_its_program_though_no_lifespan_runs(full: Full) -> None:
    code = textwrap.dedent(f"""
        import http.client, threading, time, uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Mount
        from menzil.console import Access, Console
        app = Starlette(routes=[Mount("/q", Console({full.dsn!r}, authorize=lambda request: Access.viewer("ada")))])
        server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started: time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        conn = http.client.HTTPConnection("127.0.0.1", port)
        conn.request("GET", "/q/workers.json")
        print(conn.getresponse().status, flush=True)
        server.should_exit = True
        thread.join()
    """)
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "200\n", "")
