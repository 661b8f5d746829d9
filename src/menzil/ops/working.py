"""What only workers ask: settling without waiting for the disk, the registry, jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from menzil.model.options import Leased
from menzil.model.outcome import LeaseOutcome, Response, Settlement
from menzil.model.wire import json_loads, read_json, read_time
from menzil.ops import consuming, op, values
from menzil.ops.op import Op, Rows

# A settle that a crash of the server loses is repeated by the lease, so it does not wait for the disk. In the statement
# itself, and so only in its transaction: that spares a round trip and leaves nothing in the session.
_SETTLE = """
select id, outcome
from set_config('synchronous_commit', 'off', true),
  menzil.message_complete(%s::bigint[], %s::bigint[], %s::jsonb[], %s::bigint[])
where outcome <> 'settled'"""
_HURRY = "select set_config('synchronous_commit', 'off', true)"

_HELLO = "select menzil.worker_hello(%s::text, %s::text, %s::integer, %s::text, %s::text[], %s::integer, %s::text)"
_HEARTBEAT = """
select menzil.worker_heartbeat(%s::text, %s::integer, %s::bigint, %s::bigint, %s::boolean, %s::text, %s::jsonb)"""
_CONFIGS = """
select id, name, protocol, config, updated_at from menzil.delivery_configs(%s::text[], %s::timestamptz[])"""


def cluster() -> Op[str]:
    """The identifier of the cluster, and of the database in it: the same under every address."""
    text = "select s.system_identifier || '/' || d.oid from pg_control_system() s, pg_database d"
    return Op(f"{text} where d.datname = current_database()", (), op.text)


def running_server() -> Op[str]:
    """When the server started, and the identifier of the database in it; for roles that may not ask for the cluster."""
    text = "select pg_postmaster_start_time()::text || '/' || d.oid from pg_database d"
    return Op(f"{text} where d.datname = current_database()", (), op.text)


def suspects(ids: Sequence[int]) -> Op[set[int]]:
    """menzil.worker_suspects: which of these messages may have killed a worker."""
    text = "select id from menzil.worker_suspects(%s::bigint[]) as s(id)"
    return Op(text, (values.numbers(map(str, ids)),), lambda rows: {id for (id,) in rows})


def complete(leases: Sequence[Leased], responses: Sequence[Response | None] = ()) -> Op[list[LeaseOutcome]]:
    """menzil.message_complete, on arrays, without waiting for the disk; answers only for what could not be settled."""
    return Op(_SETTLE, consuming.complete_many(leases, responses).params, _late)


def hurry() -> Op[None]:
    """Let this transaction commit without waiting for the disk."""
    return Op(_HURRY, (), op.nothing)


def _late(rows: Rows) -> list[LeaseOutcome]:
    return [LeaseOutcome(id, Settlement(outcome)) for id, outcome in rows]


class Config(NamedTuple):
    """What delivery_configs says about one name; without an id it is no endpoint any more."""

    id: int | None
    name: str
    protocol: str
    config: dict[str, Any]
    updated_at: datetime | None


def delivery_configs(names: Sequence[str], known: Sequence[datetime | None]) -> Op[list[Config]]:
    """menzil.delivery_configs: those that differ from what is known, and those that are gone."""
    times = values.array([values.time("updated_at", at) for at in known])
    return Op(_CONFIGS, (values.array(names), times), _read_configs)


def _read_configs(rows: Rows) -> list[Config]:
    return [
        Config(id, name, protocol or "", read_json(config, json_loads) if config else {}, at and read_time(at))
        for id, name, protocol, config, at in rows
    ]


def protocols() -> Op[list[str]]:
    """The protocols of the endpoints there are."""
    text = "select distinct protocol from menzil.endpoints order by protocol"
    return Op(text, (), lambda rows: [protocol for (protocol,) in rows])


def settings() -> Op[Mapping[str, str]]:
    """Every setting and its value."""
    return Op("select name, value from menzil.settings", (), dict)


def channels_there(names: Sequence[str]) -> Op[set[str]]:
    """Which of these channels exist."""
    text = "select name from menzil.channels where name = any (%s::text[])"
    return Op(text, (values.array(names),), lambda rows: {name for (name,) in rows})


def channel_names(limit: int = 1000) -> Op[list[str]]:
    """Names of channels, for a guess at what a misspelled one was meant to be."""
    text = "select name from menzil.channels order by name limit %s::integer"
    return Op(text, (values.integer("limit", limit),), lambda rows: [name for (name,) in rows])


def hello(
    worker: str, instance: str, *, host: str, pid: int, version: str, channels: Sequence[str] | None, concurrency: int
) -> Op[None]:
    """menzil.worker_hello; `instance` tells two workers of one name apart."""
    names = None if channels is None else values.array(channels)
    return Op(_HELLO, (worker, host, str(pid), version, names, str(concurrency), instance), op.nothing)


def heartbeat(
    worker: str,
    instance: str,
    *,
    in_flight: int,
    delivered: int,
    failed: int,
    stopping: bool,
    tally: Mapping[str, Any] | None = None,
) -> Op[bool]:
    """menzil.worker_heartbeat: whether the registry still knows this worker."""
    numbers = (str(in_flight), str(delivered), str(failed), "true" if stopping else "false")
    return Op(_HEARTBEAT, (worker, *numbers, instance, None if tally is None else json.dumps(tally)), op.boolean)


def stop(worker: str, instance: str) -> Op[None]:
    """menzil.worker_stop."""
    return Op("select menzil.worker_stop(%s::text, %s::text)", (worker, instance), op.nothing)


def wait() -> Op[float]:
    """menzil.worker_wait: the next send wakes us. Seconds until something is due, very many when nothing is; 0: ask."""
    return Op("select coalesce(menzil.worker_wait() * 1e6, 1e12)::bigint", (), _seconds)


def _seconds(rows: Rows) -> float:
    microseconds: int = rows[0][0]
    return microseconds / 1e6


def listen() -> Op[None]:
    """Hear of sends that find idle workers."""
    return Op("listen menzil_wake", (), op.nothing)


def unlisten() -> Op[None]:
    """Hear of them no more."""
    return Op("unlisten menzil_wake", (), op.nothing)


def call(token: str) -> Op[None]:
    """Say something on the channel of the wake-ups, to hear whether it comes back."""
    return Op("select pg_notify('menzil_wake', %s::text)", (token,), op.nothing)


def job_claim(worker: str) -> Op[str | None]:
    """menzil.job_claim: the name of the job that this worker is to do now; None when none is due."""
    return Op("select menzil.job_claim(%s::text)", (worker,), lambda rows: rows[0][0])


def job_run(name: str) -> Op[int | None]:
    """menzil.job_run: how many rows one round changed; None when it failed."""
    return Op("select menzil.job_run(%s::text)", (name,), lambda rows: rows[0][0])


def inbox_claim(consumer: str, key: str) -> Op[bool]:
    """menzil.inbox_claim."""
    params = (values.text("consumer", consumer), values.text("key", key))
    return Op("select menzil.inbox_claim(%s::text, %s::text)", params, op.boolean)
