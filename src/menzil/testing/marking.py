"""What @pytest.mark.menzil(…) asks for in the database of its test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from menzil.client import Menzil
from menzil.model.errors import UsageError


def furnish(
    dsn: str,
    *,
    channels: Iterable[str] | Mapping[str, Mapping[str, Any]] = (),
    endpoints: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Make channels (names, or names with the options of channel_set), HTTP endpoints and settings."""
    if isinstance(channels, str):  # its letters would be taken for names
        raise UsageError("channels is a list of names, or a dict.", hint=f"write channels=[{channels!r}]")
    options = channels if isinstance(channels, Mapping) else {name: {} for name in channels}
    with Menzil(dsn) as mq:
        for name, value in (settings or {}).items():
            mq.set_setting(name, value)
        for name, given in options.items():
            mq.channel_set(name, **given)
        for name, config in (endpoints or {}).items():
            mq.create_endpoint(name, "http", dict(config))
