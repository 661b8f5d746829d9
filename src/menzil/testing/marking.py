"""What @pytest.mark.menzil(…) asks for in the database of its test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from inspect import signature
from typing import Any

from menzil.client import Menzil
from menzil.model.errors import UsageError

ARGUMENTS = ("channels", "endpoints", "settings")


def furnish(
    dsn: str,
    *others: object,
    channels: Iterable[str] | Mapping[str, Mapping[str, Any]] = (),
    endpoints: Mapping[str, Mapping[str, Any]] | None = None,
    settings: Mapping[str, str] | None = None,
    **unknown: object,
) -> None:
    """Make channels (names, or names with the options of channel_set), HTTP endpoints and settings."""
    if others:
        names = others[0] if len(others) == 1 and isinstance(others[0], list | tuple | dict) else others
        shown = names if isinstance(names, dict) else list(names)
        raise UsageError("@pytest.mark.menzil takes its arguments by name.", hint=f"write channels={shown!r}")
    for name in unknown:
        raise UsageError(f"@pytest.mark.menzil has no argument {name!r}.", hint=_meant(name, ARGUMENTS))
    if isinstance(channels, str):  # its letters would be taken for names
        raise UsageError("channels is a list of names, or a dict.", hint=f"write channels=[{channels!r}]")
    options = channels if isinstance(channels, Mapping) else {name: {} for name in channels}
    with Menzil(dsn) as mq:
        for name, value in (settings or {}).items():
            mq.set_setting(name, value)
        for name, given in options.items():
            known = [one for one in signature(mq.channel_set).parameters if one not in ("name", "conn")]
            for option in given:
                if option not in known:
                    raise UsageError(f"A channel has no option {option!r}.", hint=_meant(option, known))
            mq.channel_set(name, **given)
        for name, config in (endpoints or {}).items():
            mq.create_endpoint(name, "http", dict(config))


def _meant(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else f"it may be {', '.join(known)}"
