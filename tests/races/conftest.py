"""The stage on which races are run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from menzil.embedded import Embedded
from tests.races.ground import Ground
from tests.races.stage import Stage


@pytest.fixture(scope="session")
def ground(server: Embedded, _installed: str) -> Iterator[Ground]:
    made = Ground(server, _installed)
    yield made
    made.close()


@pytest.fixture
def stage(ground: Ground) -> Iterator[Stage]:
    """Channels a and b without limits, and nobody on it yet."""
    with Stage(ground).open() as stage:
        stage.watcher.channel("a")
        stage.watcher.channel("b")
        yield stage
