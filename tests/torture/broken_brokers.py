"""Tiny histories that break a promise about brokers when they are told to, and keep it otherwise."""

from __future__ import annotations

from tests.torture.broken import CASES, breaks
from tests.torture.world import World

__all__ = ["CASES"]  # all of them: those of this file join the others


def _stored(world: World, place: int, id: int = 1, ref: str = "a", wire_id: str | None = None) -> None:
    wire_id = wire_id or f"msg_{id}_0"
    world.note("stored", "runner", channel="c", place=place, id=id, wire_id=wire_id, attempt=1, ref=ref)


def _read(world: World, count: int, once: bool = False) -> None:
    world.note("broker.read", "runner", channel="c", count=count, once=once)


@breaks("unstored")
def completed_and_not_with_the_broker(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    if not wrong:
        _stored(world, 0)
    _read(world, 0 if wrong else 1)


@breaks("unstored")
def with_the_broker_and_never_committed(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    _stored(world, 0)
    if wrong:
        _stored(world, 1, 2, "b")
    _read(world, 1)


@breaks("misplaced")
def a_message_of_a_key_before_an_earlier_one(world: World, wrong: bool) -> None:
    """A repeat after a newer message is dropped by the consumer, and breaks nothing."""
    for number, ref in ((1, "a"), (2, "b")):
        world.send(ref, id=number, key="k")
        world.done(number, ref, 10 * number, 10 * number + 5, key="k")
    if not wrong:
        _stored(world, 0, 1, "a")
    _stored(world, 1, 2, "b")
    _stored(world, 2, 1, "a")
    _read(world, 3)


@breaks("renamed")
def another_id_at_the_second_attempt(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    _stored(world, 0)
    _stored(world, 1, wire_id="msg_1_9" if wrong else None)
    _read(world, 2)


@breaks("renamed")
def twice_where_repeats_are_dropped(world: World, wrong: bool) -> None:
    world.send()
    world.done()
    _stored(world, 0)
    if wrong:
        _stored(world, 1)
    _read(world, 1 + wrong, once=True)
