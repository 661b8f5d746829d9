"""One NATS and one Mosquitto for a test process; tests use topics of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.brokers.mqtt.servers import Mosquitto, NatsMqtt
from tests.brokers.unpacked import program, why_not


@pytest.fixture(scope="session")
def nats_mqtt() -> Iterator[NatsMqtt]:
    with NatsMqtt() as server:
        yield server


@pytest.fixture(scope="session")
def has_mosquitto() -> None:
    if program("mosquitto") is None:
        pytest.skip(why_not("mosquitto"))


@pytest.fixture(scope="session")
def mosquitto(has_mosquitto: None) -> Iterator[Mosquitto]:
    with Mosquitto() as server:
        yield server
