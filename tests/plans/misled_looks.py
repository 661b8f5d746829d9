"""Calls for one message or a few: of functions that look at messages, cancel or repeat them, and of jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from menzil.ops import looking_messages, origins, searching
from menzil.ops.op import Op
from tests.plans.misled import Call, World
from tests.plans.misled_calls import CALLS, KEYED, LATER, RICH, call

__all__ = ["CALLS"]


# One message

ONE = {
    "status": "select * from menzil.message_status(%s)",
    "why": "select * from menzil.message_why(%s)",
    "life": "select * from menzil.message_life(%s)",
    "family": "select * from menzil.message_family(%s)",
    "plan": "select menzil.plan_of(%s)",
}
#: A view has no settings of its own: where the planner believes that all ids are alike, it may read a month once.
VIEWS = {
    "in full": looking_messages.message(1).text,
    "in a list": "select * from menzil._messages where id = any (array[%s]::bigint[])",
    "tries": "select * from menzil.attempts where message_id = %s",
    "archive": "select * from menzil.archive where id = %s",
    "dead letter": "select * from menzil.dlq where original_message_id = %s",
    "origin": origins.of_ended(1).look.text,
}
PLACES: dict[str, Callable[[World], int]] = {
    "waiting": lambda world: world.send(count=1)[0],
    "scheduled": lambda world: world.send(count=1, **LATER)[0],
    "keyed": lambda world: world.send(count=2, ordering_key="'same'")[1],
    "in flight": lambda world: world.in_flight()[0][0],
    "retried": lambda world: world.ended("fail")[0],
    "completed": lambda world: world.ended()[0],
    "dead": lambda world: world.ended("die")[0],
}


def _looks(statement: str, make: Callable[[World], int]) -> Callable[[World], Call]:
    def look(world: World) -> Call:
        return statement, (make(world),) * statement.count("%s")

    return look


for _what, _statement in ONE.items():
    for _place in ("waiting", "in flight", "retried", "completed", "dead"):
        CALLS[f"{_what} of one {_place}"] = _looks(_statement, PLACES[_place])
for _what, _statement in VIEWS.items():
    for _place in ("completed", "dead"):
        CALLS[f"view {_what} of one {_place}"] = _looks(_statement, PLACES[_place])
for _place in ("waiting", "scheduled", "keyed"):
    CALLS[f"cancel one {_place}"] = _looks("select menzil.message_cancel(%s)", PLACES[_place])
for _place in ("completed", "dead"):
    CALLS[f"erase one {_place}"] = _looks("select menzil.message_erase(%s)", PLACES[_place])
    CALLS[f"replay one {_place}"] = _looks("select menzil.replay_message(%s)", PLACES[_place])
CALLS["hurry one"] = _looks("select menzil.message_retry_now(%s)", PLACES["retried"])
CALLS["hurry one scheduled"] = _looks("select menzil.message_retry_now(%s)", PLACES["scheduled"])


@call("peek")
def _(world: World) -> Call:
    world.send("peeked", **KEYED)
    return "select * from menzil.message_peek('peeked', 20)", ()


@call("purge")
def _(world: World) -> Call:
    world.send("purged", **KEYED)
    world.send("purged", **LATER)
    world.send("purged")
    return "select menzil.channel_purge('purged')", ()


@call("purge beside a cancel")
def _(world: World) -> Call:
    ids = world.send("purged")
    assert world.one("select menzil.message_cancel(%s)", ids[0])
    return "select menzil.channel_purge('purged')", ()


# History


def letters(world: World, channel: str, **options: Any) -> list[int]:
    ids = world.ended("die", channel, **options)
    return list(
        world.one("select array_agg(id) from menzil.dead_letter where original_message_id = any (%s::bigint[])", ids)
    )


@call("redrive one")
def _(world: World) -> Call:
    return "select menzil.redrive_message(%s)", (letters(world, "work", **KEYED)[0],)


@call("redrive a few")
def _(world: World) -> Call:
    letters(world, "redriven", **KEYED)
    return "select menzil.redrive_endpoint('redriven')", ()


@call("redrive a few of many")
def _(world: World) -> Call:
    return "select menzil.redrive_endpoint('dead', p_limit => 20)", ()


@call("redrive a few of a cause")
def _(world: World) -> Call:
    return "select menzil.redrive_endpoint('dead', 'no', 20)", ()


@call("redrive of a blocked key")
def _(world: World) -> Call:
    return "select menzil.redrive_message(%s)", (letters(world, "blocks", ordering_key="gen_random_uuid()::text")[0],)


@call("take back")
def _(world: World) -> Call:
    letter = letters(world, "blocks", ordering_key="gen_random_uuid()::text")[0]
    world.one("select menzil.redrive_message(%s)", letter)
    return "select menzil.redrive_take_back(%s)", (letter,)


def plan(world: World, kind: str, channel: str) -> int:
    number = world.one("select menzil.plan_create(%s, jsonb_build_object('channel', %s::text))", kind, channel)
    world.conn.execute("select menzil.plan_run(%s)", (number,))
    return int(number)


for _kind, _channel in (("redrive", "dead"), ("replay", "ended"), ("cancel", "c2")):

    @call(f"step of a {_kind}")
    def _(world: World, kind: str = _kind, channel: str = _channel) -> Call:
        number = plan(world, kind, channel)
        world.one("select menzil.plan_step(%s, 1)", number)  # a cancel writes down all that waits
        return "select menzil.plan_step(%s, 20)", (number,)

    @call(f"outcome of a {_kind}")
    def _(world: World, kind: str = _kind, channel: str = _channel) -> Call:
        number = plan(world, kind, channel)
        world.one("select menzil.plan_step(%s, 20)", number)
        return "select * from menzil.plan_outcome(%s)", (number,)

    @call(f"targets of a {_kind}")
    def _(world: World, kind: str = _kind, channel: str = _channel) -> Call:
        number = plan(world, kind, channel)
        world.one("select menzil.plan_step(%s, 20)", number)
        return "select * from menzil.plan_targets(%s)", (number,)


for _kind, _channel in (("redrive", "dead"), ("replay", "ended")):

    @call(f"a {_kind} taken back")
    def _(world: World, kind: str = _kind, channel: str = _channel) -> Call:
        number = plan(world, kind, channel)
        world.one("select menzil.plan_step(%s, 20)", number)
        return "select menzil.plan_stop(%s, true)", (number,)


for _kind, _make_ids in (
    ("redrive", lambda world: letters(world, "work")),
    ("replay", lambda world: world.ended()),
    ("cancel", lambda world: world.send("waits")),
):

    @call(f"plan of ids to {_kind}")
    def _(world: World, kind: str = _kind, make: Callable[[World], list[int]] = _make_ids) -> Call:
        ids = make(world)
        number = world.one("select menzil.plan_create(%s, jsonb_build_object('ids', %s::bigint[]))", kind, ids)
        return "select menzil.plan_run(%s)", (number,)

    @call(f"step of ids to {_kind}")
    def _(world: World, kind: str = _kind, make: Callable[[World], list[int]] = _make_ids) -> Call:
        ids = make(world)
        number = world.one("select menzil.plan_create(%s, jsonb_build_object('ids', %s::bigint[]))", kind, ids)
        world.conn.execute("select menzil.plan_run(%s)", (number,))
        return "select menzil.plan_step(%s, 100)", (number,)


# Looking at a queue: a page, a channel, a search


def of(op: Op[Any]) -> Call:
    return op.text, tuple(op.params)


def _always(found: Call) -> Callable[[World], Call]:
    return lambda world: found


for _what, _statement in {
    "turns": "select * from menzil.turns(20)",
    "state of a channel": "select * from menzil.channel_state('work')",
    "health of endpoints": "select * from menzil.get_endpoint_health()",
    "in flight": "select * from menzil._in_flight()",
    "size of a channel": "select menzil._count_channel(c.id) from menzil.channel c where c.name = 'sized'",
    "channels": "select * from menzil.channels",
    "slots of a schedule": "select * from menzil.schedule_slots('nightly')",
    "newest try": "select menzil.newest_try()",
}.items():
    CALLS[_what] = _always((_statement, ()))
for _what, _op in {
    "processing": looking_messages.messages(limit=20, status="processing"),
    "leases": looking_messages.leases(),
}.items():
    CALLS[_what] = _always(of(_op))


@call("search by correlation id")
def _(world: World) -> Call:
    found = world.send(count=1, correlation_id="gen_random_uuid()")
    corr = world.one("select correlation_id from menzil.message where id = %s", found[0])
    world.one("select menzil.job_run('lookups')")
    return "select * from menzil.messages_with_correlation(%s)", (corr,)


@call("search by keys")
def _(world: World) -> Call:
    return of(searching.messages_with_key("k1", None, "work"))


@call("id at a time")
def _(world: World) -> Call:
    return "select menzil.message_id_at(clock_timestamp() - interval '1 ms')", ()


@call("feed")
def _(world: World) -> Call:
    xid = world.one("select pg_current_xact_id()::text")
    world.ended(**RICH)
    world.ended("die")
    return (
        "select count(*) from menzil.feed_between(%s, %s)",
        (xid, world.one("select pg_current_xact_id()::text")),
    )


# Jobs


def job(name: str, make: Callable[[World], Any]) -> None:
    def run(world: World) -> Call:
        make(world)
        return f"select menzil.job_run('{name}')", ()

    CALLS[f"job {name}"] = run


job("lookups", lambda world: world.send(**RICH))
job("pulse", lambda world: (world.one("select menzil.job_run('pulse')"), world.ended(), world.ended("die")))
job("sizes", lambda world: world.send("sized"))
job("causes", lambda world: world.ended("die"))
