"""A client, and a program that traces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import menzil
from tests.canary.fixtures import planted
from tests.telemetry.sdk import Sdk, installed

__all__ = ["mq", "planted", "sdk"]


@pytest.fixture
def mq(db: str) -> Iterator[menzil.Menzil]:
    """A client of a database that has the channels billing and mail."""
    with menzil.Menzil(db) as client:
        client.channel_set("billing")
        client.channel_set("mail")
        yield client


@pytest.fixture
def sdk() -> Iterator[Sdk]:
    """The SDK that the program has installed."""
    with installed() as made:
        yield made
