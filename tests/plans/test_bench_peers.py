"""The contest with other queues counts what was done, leaves out who cannot play, and shows where menzil is behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from bench.crew import Crew
from bench.peers import page
from bench.peers.contest import Contest
from bench.peers.home import Home, UnavailableError
from bench.peers.league import League, markdown
from bench.peers.player import PlayerError, Playing
from bench.peers.roster import DEFAULT, LIMIT, OURS, TUNED, TWO, Peer, roster
from bench.sections.peer_held import slices
from bench.server import Server
from bench.session import Session
from menzil.embedded import Embedded


@pytest.fixture(scope="module")
def session(server: Embedded) -> Iterator[Session]:
    made = Server(server.dsn)
    with Crew(0) as crew, Home() as home:
        yield Session(made, crew, quick=True, home=home)
    made.drop()


def peer(session: Session, name: str) -> Peer:
    return next(one for one in roster(session.home) if one.name == name)


@pytest.mark.parametrize(("name", "way"), [(OURS, DEFAULT), (OURS, TWO), (LIMIT, TUNED)])
def test_an_entrant_ends_every_message(session: Session, name: str, way: str) -> None:
    entrant = peer(session, name)
    found = Contest(session).drain(entrant, entrant.ways[way], 250)
    assert found.reading.rate > 0
    assert found.reading.cpu >= found.own > 0


def test_an_entrant_that_leaves_messages_behind_is_found_out(session: Session) -> None:
    lazy = replace(peer(session, LIMIT), left="select count(*) + 1 from bare_queue")
    with pytest.raises(PlayerError, match="handled 100 of 100 messages and left 1"):
        Contest(session).drain(lazy, lazy.ways[TUNED], 100)


@pytest.mark.parametrize("name", [OURS, LIMIT])
@pytest.mark.parametrize("verb", ["send", "batch"])
def test_everybody_sends_through_a_client_of_its_own(session: Session, name: str, verb: str) -> None:
    found = Contest(session).send(peer(session, name), verb, (1, 2), 0.05)
    assert all(reading.rate > 0 and reading.cpu > 0 for reading in found.values())
    assert list(found) == [1, 2]


def test_churn_goes_on_while_a_snapshot_is_held(session: Session) -> None:
    held, free = slices(Contest(session), peer(session, OURS), 2, 0.1)
    assert len(held) == len(free) == 2
    assert min(held + free) > 0


def test_a_peer_that_cannot_be_installed_says_why_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with Home() as home:
        for _ in range(2):
            with pytest.raises(UnavailableError, match="node and npm are not installed"):
                home.node("graphile-worker", "graphile.mjs")


def test_a_peer_that_fails_is_left_out_and_the_others_go_on(session: Session) -> None:
    contest, broken = Contest(session), replace(peer(session, LIMIT), name="broken", command=lambda: ["/nowhere"])
    among = [broken, peer(session, OURS)]
    for known in (["broken", OURS], [OURS]):
        contest.attempt(broken, lambda: contest.drain(broken, broken.ways[TUNED], 100))
        assert [one.name for one in contest.turns(among, 1)] == known
    assert "/nowhere" in session.absent.pop("broken")


def test_a_player_that_ends_says_its_last_words(session: Session) -> None:
    command = ["/bin/sh", "-c", "echo something is wrong >&2; exit 1"]
    with Playing(command, session.server.database()) as player, pytest.raises(PlayerError, match="something is wrong"):
        player.ready()


def test_the_table_says_where_menzil_is_behind() -> None:
    league = League()
    ahead, behind = league.column("send", "× bare INSERT"), league.column("idle to handled", "ms", more=False)
    for name, rate, wait in ((OURS, 0.8, 4.0), ("other", 0.4, 2.0), ("third", 0.2, 9.0), (LIMIT, 1.0, 1.0)):
        for _ in range(3):
            ahead.add(name, rate, cpu=1 / rate)
            behind.add(name, wait)
    assert ahead.best() == behind.best() == "other"
    words = markdown(league, {"server": "one"}, {"fourth": "not here"}, {"other": "1.2"})
    assert "| send | × bare INSERT | **0.80** | 0.40 | 0.20 | 1.00 | 2.00 × other |" in words
    assert "| idle to handled | ms | 4.00 | **2.00** | 9.00 | 1.00 | 0.50 × other (behind) |" in words
    assert "| send | 1.00 | 2.00 | 4.00 | 0.80 | 1.25 |" in words
    assert "- left out: fourth: not here" in words


def test_the_plot_is_a_drawing_with_a_bar_for_everybody() -> None:
    league = League()
    column = league.column("drain <tuned>", "× L")
    for name in (OURS, "other & one", LIMIT):
        column.add(name, 0.5)
    drawn = page.plot(league)
    tree = ElementTree.fromstring(drawn)
    tips = [tip.text for tip in tree.iter("{http://www.w3.org/2000/svg}title")]
    assert tips == ["menzil: 0.50 ×", "other & one: 0.50 ×", "bare SQL: 0.50 ×"]
    assert "prefers-color-scheme:dark" in drawn
