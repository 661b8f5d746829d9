"""One cluster for a test process; tests use topics of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers.kafka.stage import MockCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as found:
        yield found
