"""Names are resolved with a deadline, in few threads, and all answers are judged."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from ipaddress import ip_network

import pytest

from menzil.deliver.guard import Guard, RefusedUrlError, ResolveError, door, resolve

PUBLIC = "93.184.216.34"


class NameServer:
    """Answers with what it is told, and counts the questions. A name that is not known hangs until `wake`."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.wake = threading.Event()
        self.threads: set[int] = set()

    def __call__(self, host: str) -> list[str]:
        self.asked.append(host)
        self.threads.add(threading.get_ident())
        if host.startswith("dead"):
            assert self.wake.wait(30)
            return [PUBLIC]
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def never_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "FRESH_SECONDS", 0.0)


def run(guard: Guard, url: str, seconds: float = 5) -> list[tuple[socket.AddressFamily, str]]:
    return asyncio.run(_resolve(guard, url, seconds))


async def _resolve(guard: Guard, url: str, seconds: float = 5) -> list[tuple[socket.AddressFamily, str]]:
    return await guard.resolve(guard.parse(url), seconds)


def test_all_addresses_come_back_in_order_and_once() -> None:
    server = NameServer(["2606:4700::1111", PUBLIC, PUBLIC, "::ffff:8.8.8.8"])
    found = run(Guard(lookup=server), "https://example.com")
    assert found == [(socket.AF_INET6, "2606:4700::1111"), (socket.AF_INET, PUBLIC), (socket.AF_INET, "8.8.8.8")]


def test_an_address_asks_no_name_server() -> None:
    server = NameServer([PUBLIC])
    assert run(Guard(lookup=server), f"https://{PUBLIC}") == [(socket.AF_INET, PUBLIC)]
    assert server.asked == []


def test_an_answer_with_a_zone_is_judged_like_one_without() -> None:
    with pytest.raises(RefusedUrlError, match="link-local"):
        run(Guard(lookup=NameServer(["fe80::1%eth0"])), "https://example.com")


def test_one_bad_answer_refuses_them_all() -> None:
    with pytest.raises(RefusedUrlError, match=r"example.com resolves to 10.0.0.1, a private address"):
        run(Guard(lookup=NameServer([PUBLIC, "10.0.0.1"])), "https://example.com")


@pytest.mark.usefixtures("never_fresh")
def test_every_try_judges_anew() -> None:
    guard = Guard(lookup=NameServer([PUBLIC], ["127.0.0.1"], [PUBLIC]))

    async def thrice() -> None:
        assert await _resolve(guard, "https://example.com") == [(socket.AF_INET, PUBLIC)]
        with pytest.raises(RefusedUrlError, match="loopback"):
            await _resolve(guard, "https://example.com")
        assert await _resolve(guard, "https://example.com") == [(socket.AF_INET, PUBLIC)]

    asyncio.run(thrice())


def test_a_burst_asks_once_and_a_refusal_is_never_kept() -> None:
    server = NameServer(["10.0.0.1"], [PUBLIC])
    guard = Guard(lookup=server)

    async def burst() -> None:
        with pytest.raises(RefusedUrlError):
            await _resolve(guard, "https://example.com")
        for _ in range(3):
            await asyncio.gather(*(_resolve(guard, "https://EXAMPLE.com/x") for _ in range(20)))

    asyncio.run(burst())
    assert server.asked == ["example.com", "example.com"]


def test_a_name_without_address_may_be_tried_again() -> None:
    with pytest.raises(ResolveError, match=r"no-such-name\.invalid"):
        run(Guard(), "https://no-such-name.invalid")
    with pytest.raises(ResolveError, match="has no address"):
        run(Guard(lookup=NameServer([])), "https://example.com")
    with pytest.raises(ResolveError, match="no address"):
        run(Guard(lookup=NameServer(["good.example"])), "https://example.com")


@pytest.mark.parametrize("trouble", [OSError(5, "broken"), RuntimeError("odd"), UnicodeError("odd")])
def test_a_resolver_that_breaks_ends_no_worker(trouble: Exception) -> None:
    def lookup(host: str) -> list[str]:
        raise trouble

    with pytest.raises(ResolveError, match=r"example.com has no address: (broken|odd)"):
        run(Guard(lookup=lookup), "https://example.com")


def test_a_thread_that_cannot_start_gives_its_slot_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    guard = Guard(lookup=NameServer([PUBLIC]))

    async def often() -> None:
        with monkeypatch.context() as no_threads:
            no_threads.setattr(threading.Thread, "start", start)
            for _ in range(resolve.SLOTS + 1):
                with pytest.raises(ResolveError, match="can't start new thread"):
                    await _resolve(guard, "https://example.com")
        assert await _resolve(guard, "https://example.com")

    asyncio.run(often())


def test_a_dead_name_takes_one_thread_however_often_it_is_asked_for_and_others_go_on() -> None:
    server = NameServer([PUBLIC])
    guard = Guard(lookup=server)

    async def storm() -> None:
        tries = [_resolve(guard, "https://dead.example", 0.05) for _ in range(200)]
        ended = await asyncio.gather(*tries, return_exceptions=True)
        assert {type(end) for end in ended} == {ResolveError}
        assert "gave no answer for dead.example in 0.05 seconds" in str(ended[0])
        assert await _resolve(guard, "https://example.com") == [(socket.AF_INET, PUBLIC)]
        server.wake.set()

    asyncio.run(storm())
    assert server.asked == ["dead.example", "example.com"]


def test_dead_name_servers_take_no_more_threads_than_there_are_slots_and_give_them_back() -> None:
    server = NameServer([PUBLIC])
    guard = Guard(lookup=server)

    async def storm() -> None:
        tries = [_resolve(guard, f"https://dead{n}.example", 0.1) for n in range(100)]
        ended = await asyncio.gather(*tries, return_exceptions=True)
        assert {type(end) for end in ended} == {ResolveError}
        assert len(server.asked) == resolve.SLOTS
        with pytest.raises(ResolveError, match="no answer"):
            await _resolve(guard, "https://example.com", 0.05)
        server.wake.set()
        assert await _resolve(guard, "https://example.com", 30)

    asyncio.run(storm())


def test_the_process_ends_while_a_name_server_hangs() -> None:
    guard = Guard(lookup=NameServer([PUBLIC]))
    with pytest.raises(ResolveError):
        run(guard, "https://dead.example", 0.05)
    left = [thread for thread in threading.enumerate() if thread.name == "menzil-resolve"]
    assert left
    assert all(thread.daemon for thread in left)


def test_settings_are_read_as_the_database_writes_them() -> None:
    guard = Guard.from_settings({
        "http_allow_internal_urls": "false", "http_allow_http": "false",
        "http_allowed_networks": "10.0.0.0/8, fd00::/8",
    })  # fmt: skip
    assert guard.judge("10.1.1.1") is None
    assert guard.judge("fd00::1") is None
    assert guard.judge("127.0.0.1")
    with pytest.raises(RefusedUrlError):
        guard.parse("http://example.com")
    assert Guard.from_settings({"http_allow_internal_urls": "true"}).judge("127.0.0.1") is None
    assert Guard.from_settings({}).judge("127.0.0.1")


def test_a_network_that_cannot_be_read_opens_nothing_and_ends_no_worker() -> None:
    guard = Guard.from_settings({"http_allowed_networks": "10.0.0.0/8, everything, 192.168.1.1/8"})
    assert guard.judge("10.0.0.1") is None
    assert guard.judge("192.168.1.1")


def test_new_settings_make_a_new_guard_and_the_same_ones_keep_it() -> None:
    guard = Guard.from_settings({}, lookup=NameServer(["127.0.0.1"]))
    assert guard.refresh({"http_allow_http": "true"}) is guard
    opened = guard.refresh({"http_allow_internal_urls": "true"})
    assert run(opened, "http://example.com") == [(socket.AF_INET, "127.0.0.1")]
    with pytest.raises(RefusedUrlError):
        run(opened.refresh({}), "http://example.com")


def test_guard_of_a_listed_network_resolves_names_there() -> None:
    server = NameServer(["10.0.0.7"])
    assert run(Guard(lookup=server, allowed_networks=[ip_network("10.0.0.0/24")]), "https://example.com")


def test_a_literal_costs_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(allow_internal=True)
    asked: list[object] = []
    original: Callable[..., str | None] = guard._judge.judge
    monkeypatch.setattr(guard._judge, "judge", lambda address: asked.append(address) or original(address))

    async def often() -> None:
        for _ in range(1000):
            assert await _resolve(guard, "http://127.0.0.1:8080/hook") == [(socket.AF_INET, "127.0.0.1")]

    asyncio.run(often())
    assert len(asked) == 1
