"""The line that says where the records of a bridge come from."""

from __future__ import annotations

from typing import Any

import pytest

from menzil.watch.bridges import source


@pytest.mark.parametrize(
    ("protocol", "config", "line"),
    [
        ("redis", {"host": "a", "port": 6380, "stream": "s"}, "redis a:6380 s"),
        ("redis", {"host": "a", "stream": "s"}, "redis a s"),
        ("amqp", {"host": "a", "queue": "q"}, "amqp a q"),
        ("mqtt", {"host": "a", "topic": "t/#"}, "mqtt a t/#"),
        ("kafka", {"servers": ["a:1", "b:1"], "topic": "t"}, "kafka a:1, b:1 t"),
        ("nats", {"servers": ["a"], "stream": "S", "subject": "x.>"}, "nats a S"),
    ],
)
def test_every_kind_of_source(protocol: str, config: dict[str, Any], line: str) -> None:
    assert source(protocol, config) == line
