"""The stage on which races are run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.races.stage import Stage


@pytest.fixture
def stage(db: str) -> Iterator[Stage]:
    """Channels a and b without limits, and nobody on it yet."""
    with Stage(db).open() as stage:
        stage.watcher.channel("a")
        stage.watcher.channel("b")
        yield stage
