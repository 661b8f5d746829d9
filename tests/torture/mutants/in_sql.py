"""Bugs in the SQL of the engine: each takes away one thing that a promise stands on."""

from __future__ import annotations

from tests.torture.mutants.mutant import Edit

_TOKEN = """
       and ((l.id, l.attempt) in (select u.id, u.attempt from unnest(p_ids, p_attempts) u(id, attempt))) is true"""
_BEAT = _TOKEN.replace("p_attempts", "p_num_attempts")

#: A settle takes the lease of the message, whoever holds it.
SETTLE_WITHOUT_TOKEN = (Edit("settle/take_leases.sql", _TOKEN, ""),)

#: A heartbeat keeps the lease of the message, whoever holds it.
HEARTBEAT_WITHOUT_TOKEN = (Edit("settle/message_heartbeat.sql", _BEAT, ""),)

_FAST = "  perform set_config('synchronous_commit', 'off', true);\n"

#: Sends do not wait for the disk, whatever the caller asked for.
ASYNCHRONOUS_COMMIT = (
    Edit(
        "send/send.sql",
        "begin\n  select c.id, s.max_payload_size",
        f"begin\n{_FAST}  select c.id, s.max_payload_size",
    ),
    Edit(
        "send/send_one.sql",
        "begin\n  select c.id, c.enabled",
        f"begin\n{_FAST}  select c.id, c.enabled",
    ),
    Edit(
        "send/send_batch.sql",
        "begin\n  select c.id, c.enabled",
        f"begin\n{_FAST}  select c.id, c.enabled",
    ),
    Edit(
        "send/send_many.sql",
        "begin\n  v_channels := menzil._check_many(",
        f"begin\n{_FAST}  v_channels := menzil._check_many(",
    ),
)

#: Two consumers may be at the same lane and find the same messages.
LEASE_WITHOUT_LOCK = (
    Edit("consume/take_turns.sql", "limit p_width for update skip locked) t", "limit p_width) t", 3),
    Edit(
        "consume/visit_early.sql", "and r.id = e.id for update skip locked offset 0) r", "and r.id = e.id offset 0) r"
    ),
    Edit("consume/visit_carefully.sql", "limit p_room + 1 for update skip locked) q", "limit p_room + 1) q"),
)

#: Two consumers may ask the same gate and both be told that there is room.
LIMIT_WITHOUT_LOCK = (
    Edit(
        "consume/ask_gates.sql",
        "where g.channel_id = p_channels[i] for update skip locked;",
        "where g.channel_id = p_channels[i];",
    ),
)

_WAIT_AGAIN = """  perform menzil._wait_again(v_lease.ids, array(select u.n - 1 from unnest(v_lease.attempts) u(n)),
    v_lease.leased_ats, p_now, array_fill(p_now, array[cardinality(v_lease.ids)]));
  perform menzil._free_slots(v_lease.channels, v_lease.epochs, p_now);
  return;
  perform menzil._fail_leases("""

#: A lease that ran out was none: only who says that it failed counts an attempt.
ATTEMPTS_AT_FAILURE = (Edit("consume/recover.sql", "  perform menzil._fail_leases(", _WAIT_AGAIN),)

#: Nobody takes back what a dead worker held.
NO_REAPER = (
    Edit(
        "consume/recover.sql", "begin\n  with due as materialized (", "begin\n  return 0;\n  with due as materialized ("
    ),
)

#: The next message of an ordering key becomes ready whether or not an earlier one is on its way.
FIFO_WITHOUT_EARLIER = (
    Edit(
        "consume/raise_heads.sql",
        "       where q.channel_id = k.channel_id and q.ordering_key = k.ordering_key\n",
        "       where q.channel_id = k.channel_id and q.ordering_key = k.ordering_key and q.place = 1\n",
    ),
)

#: An idempotency key is free again when its message ends.
IDEMPOTENCY_WHILE_ACTIVE = (Edit("settle/end_messages.sql", "where v_retention > 0 order by", "where false order by"),)

_TAKE_AS_THEY_COME = """begin
  for i in 1 .. cardinality(p_ids) loop
    with gone as (
      delete from menzil.lease l where l.id = p_ids[i] and l.attempt = p_attempts[i] returning l.*
    )
    select ids || array_agg(g.id), attempts || array_agg(g.attempt), channels || array_agg(g.channel_id),
           leased_ats || array_agg(g.leased_at), workers || array_agg(g.worker), keys || array_agg(g.ordering_key),
           epochs || array_agg(g.epoch)
      into ids, attempts, channels, leased_ats, workers, keys, epochs from gone g;
  end loop;
  return;
  with gone as ("""

#: A settle of many takes their leases in the order in which they were named.
UNSORTED_SETTLE = (Edit("settle/take_leases.sql", "begin\n  with gone as (", _TAKE_AS_THEY_COME),)
