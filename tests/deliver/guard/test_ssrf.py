"""Whatever a URL looks like, nobody gets the worker to connect to what is inside.

The real protocol delivers; servers on loopback count who comes, and an audit hook sees every connect of the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from menzil.deliver.guard import door
from menzil.deliver.guard.resolve import system_lookup
from menzil.deliver.protocol import Refused, Surroundings
from menzil.model.outcome import Complete, Fail
from tests.deliver.guard.ground import Victim, connects, deliver, has_version_6, protocol
from tests.deliver.guard.table import ROWS, Row, printed

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explanation" / "ssrf.md"
GOOD = "https://good.example/"


@pytest.fixture(scope="module")
def victims() -> Iterator[dict[str, Victim]]:
    """Servers on one port of several loopback addresses."""
    first = Victim("127.0.0.1")
    found = {"127.0.0.1": first}
    for address in ("127.0.0.2", "::1") if has_version_6() else ("127.0.0.2",):
        found[address] = Victim(address, first.port)
    yield found
    for victim in found.values():
        victim.close()


def places(url: str) -> dict[str, dict[str, Any]]:
    """Every key of a config that is a URL, with this one."""
    oauth2 = {"type": "oauth2", "client_id": "c", "client_secret": "s", "token_url": url}
    return {
        "url": {"url": url},
        "token_url": {"url": GOOD, "auth": oauth2},
        "proxy": {"url": GOOD, "proxy": {"url": url}},
    }


def answering(row: Row) -> Any:
    def lookup(host: str) -> list[str]:
        if host == "good.example":
            return ["93.184.216.34"]
        return system_lookup(host) if row.answers is None else list(row.answers)

    return lookup


@pytest.mark.parametrize("row", ROWS, ids=[f"{number} {row.what}" for number, row in enumerate(ROWS, 1)])
def test_no_delivery_gets_inside(row: Row, victims: dict[str, Victim]) -> None:
    url = row.url.replace("PORT", str(victims["127.0.0.1"].port))

    async def attempt() -> None:
        for place, config in places(url).items():
            http = protocol(answering(row))
            outcome = await deliver(http, config)
            await http.close()
            assert isinstance(outcome, Fail), place
            assert outcome.retry is False, place
            if place == "url":
                assert row.refusal in outcome.reason

    with connects() as seen:
        asyncio.run(attempt())
    assert seen == []
    assert [victim.strangers() for victim in victims.values()] == [0] * len(victims)


def test_the_table_is_long_and_printed_in_the_documents() -> None:
    assert len(ROWS) >= 70
    assert len({(row.url, row.answers) for row in ROWS}) == len(ROWS)
    assert printed() in PAGE.read_text(encoding="utf-8"), "run python -m tests.deliver.guard.table"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]", "[::ffff:127.0.0.1]", "inside.example"]
)
def test_who_opens_it_gets_in(host: str) -> None:
    victim = Victim("::1" if host == "[::1]" else "127.0.0.1")

    async def attempt() -> None:
        http = protocol(
            lambda name: ["127.0.0.1"] if name == "inside.example" else system_lookup(name),
            http_allow_internal_urls="true",
        )
        assert isinstance(await deliver(http, {"url": f"http://{host}:{victim.port}/hook"}), Complete)
        await http.close()

    asyncio.run(attempt())
    assert victim.strangers() == 1
    victim.close()


def test_a_listed_network_is_open_and_its_neighbour_is_not(victims: dict[str, Victim]) -> None:
    port = victims["127.0.0.1"].port

    async def attempt() -> None:
        http = protocol(http_allowed_networks="127.0.0.2/32")
        assert isinstance(await deliver(http, {"url": f"http://127.0.0.2:{port}/"}), Complete)
        assert isinstance(await deliver(http, {"url": f"http://127.0.0.1:{port}/"}), Fail)
        await http.close()

    with connects() as seen:
        asyncio.run(attempt())
    assert seen == [("127.0.0.2", port)]


def test_a_name_that_changes_its_address_after_it_was_judged_gains_nothing(
    victims: dict[str, Victim], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "FRESH_SECONDS", 0.0)
    port = victims["127.0.0.1"].port
    before = victims["127.0.0.1"].strangers()
    answers: list[str] = []

    def rebinding(_: str) -> list[str]:
        # Good to whoever asks first, bad to whoever asks again, and so on.
        answers.append("127.0.0.2" if len(answers) % 2 == 0 else "127.0.0.1")
        return [answers[-1]]

    async def attempt() -> list[type]:
        http = protocol(rebinding, http_allowed_networks="127.0.0.2/32")
        ended = [type(await deliver(http, {"url": f"http://rebind.example:{port}/"})) for _ in range(6)]
        await http.close()
        return ended

    with connects() as seen:
        assert asyncio.run(attempt()) == [Complete, Refused] * 3
    assert len(answers) == 6, "each delivery asked once, and connected to what it was told"
    assert set(seen) == {("127.0.0.2", port)}
    assert victims["127.0.0.1"].strangers() == before


def test_settings_that_close_a_network_close_it_at_once(victims: dict[str, Victim]) -> None:
    port = victims["127.0.0.1"].port

    async def attempt() -> None:
        http = protocol(http_allow_internal_urls="true")
        assert isinstance(await deliver(http, {"url": f"http://127.0.0.1:{port}/"}), Complete)
        http.refresh(Surroundings({"http_allow_internal_urls": "false"}, "tester"))
        assert isinstance(await deliver(http, {"url": f"http://127.0.0.1:{port}/"}), Fail)
        await http.close()

    asyncio.run(attempt())


def test_proxies_of_the_environment_are_not_asked(victims: dict[str, Victim], monkeypatch: pytest.MonkeyPatch) -> None:
    port = victims["127.0.0.1"].port
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}")
    before = victims["127.0.0.1"].strangers()

    async def attempt() -> None:
        http = protocol(http_allowed_networks="127.0.0.2/32")
        assert isinstance(await deliver(http, {"url": f"http://127.0.0.2:{port}/"}), Complete)
        await http.close()

    asyncio.run(attempt())
    assert victims["127.0.0.1"].strangers() == before
