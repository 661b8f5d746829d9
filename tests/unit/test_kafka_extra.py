"""A worker without the extra of Kafka says what to install."""

from __future__ import annotations

import sys

import pytest

from menzil.deliver.protocol import Surroundings
from menzil.deliver.registry import Protocols, UnknownProtocolError


def test_a_worker_without_the_client_of_kafka_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("menzil.deliver.kafka", "confluent_kafka"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UnknownProtocolError, match=r"pip install 'menzil\[kafka\]'"):
        Protocols(Surroundings({}, "test")).get("kafka")
