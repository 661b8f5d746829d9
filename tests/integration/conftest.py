"""A client with a channel, and embedded servers with a data directory of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import menzil
from tests.integration.embedded_room import Room


@pytest.fixture
def mq(db: str) -> Iterator[menzil.Menzil]:
    """A client of a database that has the channel billing."""
    with menzil.Menzil(db) as client:
        client.channel_set("billing")
        yield client


@pytest.fixture(scope="module")
def shared_room() -> Iterator[Room]:
    with Room() as made:
        yield made


@pytest.fixture
def room(shared_room: Room) -> Iterator[Room]:
    """A server that ran before and is stopped now; the tests of one file take turns."""
    yield shared_room
    shared_room.clear()


@pytest.fixture
def own_room() -> Iterator[Room]:
    """A server that ran before, for a test that ruins it."""
    with Room() as made:
        yield made


@pytest.fixture
def empty_room() -> Iterator[Room]:
    """No server yet."""
    with Room(empty=True) as made:
        yield made
