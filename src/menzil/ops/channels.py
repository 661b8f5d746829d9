"""Channels: their limits, and holding, releasing and emptying them."""

from __future__ import annotations

from menzil.model.durations import Seconds
from menzil.ops import op, values
from menzil.ops.op import Op

_SET = """
select menzil.channel_set(
  p_name => %s::text, p_max_concurrency => %s::integer, p_max_size => %s::bigint,
  p_release_interval_ms => %s::bigint, p_release_count => %s::integer, p_on_dead => %s::text)"""


def channel_set(
    name: str,
    *,
    max_concurrency: int | None = None,
    max_size: int | None = None,
    release_interval: Seconds = 0,
    release_count: int = 1,
    on_dead: str = "continue",
) -> Op[None]:
    """menzil.channel_set."""
    params = (
        values.text("channel", name),
        values.optional_integer("max_concurrency", max_concurrency),
        values.optional_integer("max_size", max_size),
        values.milliseconds("release_interval", release_interval),
        values.integer("release_count", release_count),
        values.text("on_dead", on_dead),
    )
    return Op(_SET, params, op.nothing)


def channel_pause(name: str) -> Op[None]:
    """menzil.channel_pause."""
    return Op("select menzil.channel_pause(%s::text)", (values.text("channel", name),), op.nothing)


def channel_resume(name: str) -> Op[None]:
    """menzil.channel_resume."""
    return Op("select menzil.channel_resume(%s::text)", (values.text("channel", name),), op.nothing)


def channel_release(name: str) -> Op[None]:
    """menzil.channel_release."""
    return Op("select menzil.channel_release(%s::text)", (values.text("channel", name),), op.nothing)


def channel_purge(name: str) -> Op[int]:
    """menzil.channel_purge."""
    return Op("select menzil.channel_purge(%s::text)", (values.text("channel", name),), op.integer)
