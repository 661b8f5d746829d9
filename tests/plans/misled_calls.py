"""Calls for one message or a few: of functions that send, lease and settle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.plans.misled import SETTLES, Call, World

CALLS: dict[str, Callable[[World], Call]] = {}


def call(name: str) -> Callable[[Callable[[World], Call]], Callable[[World], Call]]:
    def keep(make: Callable[[World], Call]) -> Callable[[World], Call]:
        assert name not in CALLS
        CALLS[name] = make
        return make

    return keep


RICH: dict[str, Any] = {
    "ordering_key": "gen_random_uuid()::text",
    "idempotency_key": "gen_random_uuid()::text",
    "expires_at": "now() + interval '9 days'",
    "correlation_id": "gen_random_uuid()",
}
KEYED: dict[str, Any] = {"ordering_key": "gen_random_uuid()::text"}
LATER: dict[str, Any] = {"scheduled_at": "now() + interval '9 days'"}
SOON: dict[str, Any] = {"expires_at": "clock_timestamp() + interval '1 ms'"}
_SEND = "select menzil.send_with_options('work', '{}', p_idempotency_key => %s)"


# Sends


@call("send")
def _(world: World) -> Call:
    return "select menzil.send('c0', '{}')", ()


@call("send with all options")
def _(world: World) -> Call:
    options = ", ".join(f"p_{name} => {value}" for name, value in RICH.items())
    return f"select menzil.send_with_options('work', '{{}}', {options}) from (select 1 as g) g", ()


@call("send batch")
def _(world: World) -> Call:
    return "select menzil.send_batch('c0', array_fill('{}'::jsonb, array[20]))", ()


def again(world: World, ids: list[int]) -> Call:
    keys = world.one(
        "select array_agg(idempotency_key order by id) from menzil.message where id = any (%s::bigint[])", ids
    )
    return (
        "select menzil.send_many(array_fill('work'::text, array[20]), array_fill('{\"a\": 1}'::jsonb, array[20]),"
        " p_idempotency_keys => %s::text[])",
        (keys,),
    )


@call("send many again while they wait")
def _(world: World) -> Call:
    return again(world, world.send(**RICH))


@call("send many again after they ended")
def _(world: World) -> Call:
    return again(world, world.ended(**RICH))


@call("send many again after they failed")
def _(world: World) -> Call:
    return again(world, world.ended("die", idempotency_key="gen_random_uuid()::text"))


@call("send many again when they expired")
def _(world: World) -> Call:
    return again(world, expired(world, idempotency_key="gen_random_uuid()::text"))


@call("send one again")
def _(world: World) -> Call:
    key = str(world.number())
    world.conn.execute(_SEND, (key,))
    return _SEND, (key,)


@call("publish")
def _(world: World) -> Call:
    return "select menzil.publish('e', '{}', p_idempotency_key => %s)", (str(world.number()),)


@call("bulk send")
def _(world: World) -> Call:
    name = f"bulk {world.number()}"
    staging = world.one("select staging from menzil.bulk_open(%s)", name)
    world.conn.execute(
        f"insert into menzil.{staging} (token, n, endpoint, payload, ordering_key, idempotency_key, expires_at)"
        " select 't', g, 'bulk', '{}', 'k' || g, %s || g, now() + interval '9 days' from generate_series(0, 19) g",
        (name,),
    )
    return "select * from menzil.bulk_commit(%s, array['t'], array[20])", (name,)


# Consumers

_DEQUEUE = "select id from menzil.message_dequeue(600000, 20, array[%s])"


@call("dequeue")
def _(world: World) -> Call:
    world.send()
    return _DEQUEUE, ("work",)


@call("dequeue of a backlog")
def _(world: World) -> Call:
    return _DEQUEUE, ("c1",)


@call("dequeue of everything")
def _(world: World) -> Call:
    return "select id from menzil.message_dequeue(600000, 20)", ()


@call("dequeue with keys and expiry")
def _(world: World) -> Call:
    world.send(**RICH)
    return _DEQUEUE, ("work",)


@call("dequeue of keys in turn")
def _(world: World) -> Call:
    return _DEQUEUE, ("rich",)


@call("dequeue of expired messages")
def _(world: World) -> Call:
    expired(world)
    return _DEQUEUE, ("work",)


@call("dequeue beside a cancel")
def _(world: World) -> Call:
    ids = world.send(**RICH)
    assert world.one("select menzil.message_cancel(%s)", ids[0])
    return _DEQUEUE, ("work",)


@call("dequeue of a limited channel")
def _(world: World) -> Call:
    world.send("limited")
    return _DEQUEUE, ("limited",)


@call("next")
def _(world: World) -> Call:
    ids, attempts = world.in_flight()
    world.send()
    return (
        "select id from menzil.message_next(%s::bigint[], %s::bigint[], 600000, 20, array['work'])",
        (ids, attempts),
    )


def _settles(act: str, **options: Any) -> Callable[[World], Call]:
    return lambda world: SETTLES[act](*world.in_flight(**options))


for _act in SETTLES:
    CALLS[_act] = _settles(_act)
    CALLS[f"{_act} with keys"] = _settles(_act, **RICH)


@call("complete in a channel with a size")
def _(world: World) -> Call:
    world.send("sized")
    return SETTLES["complete"](*world.lease("sized"))


@call("fail one of a few")
def _(world: World) -> Call:
    ids, attempts = world.in_flight()
    return SETTLES["fail"](ids[3:4], attempts[3:4])


@call("recover")
def _(world: World) -> Call:
    ids, _ = world.in_flight(**KEYED)
    world.conn.execute("update menzil.lease set unlock_at = now(), watch_at = now() where ids && %s::bigint[]", (ids,))
    return "select menzil.recover_stale_messages()", ()


@call("come back")
def _(world: World) -> Call:
    world.settle("defer", *world.in_flight(**KEYED))
    return _DEQUEUE, ("work",)


def expired(world: World, **options: Any) -> list[int]:
    ids = world.send(**options, **SOON)
    world.conn.execute("select pg_sleep(0.002)")
    return ids


@call("expire")
def _(world: World) -> Call:
    expired(world)
    return "select menzil.mark_expired_messages()", ()


@call("expire on the schedule and behind keys")
def _(world: World) -> Call:
    world.send(**SOON, **KEYED)
    ids = world.send(**LATER, expires_at="now() + interval '10 days'")
    world.conn.execute("update menzil.expiring set expires_at = now() where id = any (%s::bigint[])", (ids,))
    return "select menzil.mark_expired_messages()", ()


@call("cleanup of keys")
def _(world: World) -> Call:
    world.ended("die", **RICH)
    world.conn.execute("update menzil.job set state = null where name = 'keys'")
    return "select menzil.cleanup_used_keys(20)", ()
