"""Several databases as people look at them: commands, metrics, the console, and the page that tells of it."""

from __future__ import annotations

import json
import re
import shlex
import socket
import time
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner, Result
from psycopg.conninfo import conninfo_to_dict

from menzil.cli import main
from menzil.cli.exporting import Scraped
from menzil.console import Access, Consoles
from menzil.telemetry.exporters import Exporters
from tests.console.seat import Answer, Browser, served
from tests.integration.several.conftest import Make
from tests.telemetry.scraped import asking

NOWHERE = "host=127.0.0.1 port=1 dbname=gone password=unseen-word"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "serve-several-databases.md"


def menzil(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture
def pair(make: Make) -> dict[str, str]:
    return {"shop": make(3), "crm": make(1)}


def listed(place: Path, databases: dict[str, str]) -> str:
    file = place / "databases"
    file.write_text("".join(f"{name} {dsn}\n" for name, dsn in databases.items()))
    return str(file)


def test_json_has_a_key_for_each_database_and_says_which_one_is_down(pair: dict[str, str], tmp_path: Path) -> None:
    file = listed(tmp_path, pair | {"gone": NOWHERE})
    done = menzil("channel", "list", "--json", "--dsn-file", file)
    found = json.loads(done.stdout)
    assert list(found) == ["shop", "crm", "gone"]
    assert [one["name"] for one in found["shop"]] == ["orders"]
    assert "The server cannot be reached" in found["gone"]["error"]
    assert done.exit_code == 2
    assert "unseen-word" not in done.output


def test_one_database_is_shown_as_ever(pair: dict[str, str]) -> None:
    found = json.loads(menzil("channel", "list", "--json", "--dsn", pair["shop"]).stdout)
    assert [one["name"] for one in found] == ["orders"]


def test_a_section_has_the_name_of_its_database(pair: dict[str, str], tmp_path: Path) -> None:
    done = menzil("workers", *(word for name, dsn in pair.items() for word in ("--dsn", f"{name} {dsn}")))
    assert done.exit_code == 0
    assert [line for line in done.stdout.splitlines() if line] == ["shop", "crm"]
    frame = json.loads(menzil("top", "--once", "--json", "--dsn-file", listed(tmp_path, pair)).stdout)
    assert list(frame) == ["shop", "crm"]


def test_a_database_that_is_down_is_zero_and_slows_no_scrape(pair: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, asking(pair["shop"]) as shop:
        port = silent.getsockname()[1]  # it accepts connections and never answers
        gone = Scraped(f"host=127.0.0.1 port={port} dbname=gone connect_timeout=60")
        exporters = Exporters({"shop": shop.run, "gone": gone.run}, patience=1.0)
        text, began = "", time.monotonic()
        while 'menzil_up{database="shop"} 1.0' not in text:  # a busy machine may take longer than the patience
            text = exporters.render()[1].decode()
            assert time.monotonic() - began < 50, text
        exporters.close()
    assert 'menzil_up{database="gone"} 0.0' in text
    assert re.search(r'menzil_messages_sent_total\{channel="orders",database="shop"\}|database="shop",channel', text)
    assert len([line for line in text.splitlines() if 'database="gone"' in line]) == 1


def confirmed(browser: Browser, below: str, plan: Answer) -> Answer:
    return browser.post(f"{below}/acts/channel-pause/do", {name: plan.field(name) for name in ("csrf", "plan")})


def test_an_act_is_done_in_the_database_of_its_page(pair: dict[str, str]) -> None:
    with served(Consoles(pair, local=Access.admin("ada"), metrics_open=True)) as browser:
        assert browser.get("/").headers["Location"] == "/db/shop/"
        page = browser.get("/db/crm/channels")
        assert re.findall(r'<a href="(/db/\w+/)"', page.text)[:2] == ["/db/shop/", "/db/crm/"]
        plan = browser.get("/db/crm/acts/channel-pause?channel=orders")
        assert plan.status == 200, plan.words[:400]
        elsewhere = confirmed(browser, "/db/shop", plan)
        assert elsewhere.status == 403, elsewhere.words[:400]
        assert paused(pair["shop"]) is paused(pair["crm"]) is False
        assert confirmed(browser, "/db/crm", plan).status == 303
        assert (paused(pair["shop"]), paused(pair["crm"])) == (False, True)
        # The same question to two databases has two answers, also within the seconds for which an answer is shared.
        counts = [browser.get(f"/db/{name}/channels.json").json for name in pair]
        assert [one["channels"][0]["waiting"] for one in counts] == [3, 1]
        assert 'menzil_up{database="crm"} 1.0' in browser.get("/metrics").text
        assert browser.get("/healthz").status == 200
        assert browser.get("/channels").status == 404


def paused(dsn: str) -> bool:
    with psycopg.connect(dsn, autocommit=True) as conn:
        row = conn.execute("select paused from menzil.channels where name = 'orders'").fetchone()
        assert row is not None
        return bool(row[0])


def test_a_database_that_is_down_leaves_the_pages_of_the_others(pair: dict[str, str]) -> None:
    with served(Consoles({"gone": NOWHERE, "shop": pair["shop"]}, local=Access.admin("ada"))) as browser:
        assert browser.get("/db/shop/channels").status == 200
        assert browser.get("/healthz").status == 200
        text = browser.get("/db/gone/").text
        assert "unseen-word" not in text
        assert str(conninfo_to_dict(pair["shop"])["password"]) not in text


def test_the_program_and_the_commands_of_the_page_work(
    pair: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGE.read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    exec(program, {"shop_dsn": pair["shop"], "crm_dsn": pair["crm"]})
    said = capsys.readouterr().out.split("\n")
    assert sorted(line.split()[0] for line in said if line) == ["crm", "shop", "shop", "shop"]
    file = listed(tmp_path, pair)
    lines = [line for line in text.splitlines() if line.startswith("menzil ") and "--dsn-file" in line]
    looks = [line for line in lines if not re.search(r"worker|--serve|console", line)]
    assert len(looks) == 2
    for line in looks:
        done = menzil(*shlex.split(line.replace("/etc/menzil/databases", file))[1:])
        assert done.exit_code < 2, done.output
