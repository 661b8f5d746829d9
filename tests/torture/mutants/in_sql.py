"""Bugs in the SQL of the engine: each takes away one thing that a promise stands on."""

from __future__ import annotations

from tests.torture.mutants.mutant import Edit

_CONSUME, _SETTLE, _SEND = "3_verbs/consume", "3_verbs/settle", "3_verbs/send"

#: A settle takes the lease of the message, whichever attempt it shows.
SETTLE_WITHOUT_ATTEMPT = (
    Edit(
        f"{_SETTLE}/take_leases.sql",
        "where l.lo_id = v_ask.lo and l.attempt = v_ask.attempt",
        "where l.lo_id = v_ask.lo",
        3,
    ),
    Edit(f"{_SETTLE}/lease_start.sql", " and l.attempt = p_attempt and ", " and ", 3),
    Edit(f"{_SETTLE}/leases_of.sql", " and l.attempt = v_attempts[v_at];", ";"),
)

#: A heartbeat keeps the lease of the message, whichever attempt it shows.
HEARTBEAT_WITHOUT_ATTEMPT = (
    Edit(
        f"{_SETTLE}/message_heartbeat.sql",
        "unnest(menzil._leases_of(p_ids, p_num_attempts, p_batches), p_ids, p_num_attempts)",
        "unnest(array(select (select l.lo_id from menzil.lease l where w.id between l.lo_id and l.hi_id"
        " and (l.ids is null or w.id = any (l.ids)) limit 1)"
        " from unnest(p_ids) with ordinality w(id, n) order by w.n), p_ids, p_num_attempts)",
    ),
    Edit(
        f"{_SETTLE}/message_heartbeat.sql",
        "where l.lo_id = v_ask.lo and l.attempt = v_ask.attempt",
        "where l.lo_id = v_ask.lo",
    ),
)

_FAST = "  perform set_config('synchronous_commit', 'off', true);\n"


def _hurry(file: str, begins: str) -> Edit:
    return Edit(f"{_SEND}/{file}.sql", f"begin\n{begins}", f"begin\n{_FAST}{begins}")


_PARENT = "  with parent as (select from only menzil.message)\n"

#: Sends do not wait for the disk, whatever the caller asked for.
ASYNCHRONOUS_COMMIT = (
    Edit(f"{_SEND}/send.sql", _PARENT, f"{_FAST}{_PARENT}"),
    _hurry("send_one", "  select c.id, c.enabled"),
    _hurry("send_batch", "  select c.id, c.enabled"),
    _hurry("send_many", "  v_channels := menzil._check_many("),
)

#: Two consumers may be at the same lane and find the same messages.
LEASE_WITHOUT_LOCK = (
    Edit(f"{_CONSUME}/take_turns.sql", "limit p_width for update skip locked) t", "limit p_width) t", 2),
    Edit(f"{_CONSUME}/take_turns.sql", "and l.next_at <= p_now for update skip locked) t", "and l.next_at <= p_now) t"),
)

#: Two consumers may ask the same gate and both be told that there is room.
LIMIT_WITHOUT_LOCK = (
    Edit(
        f"{_CONSUME}/message_dequeue.sql",
        "where g.channel_id = v_lane.channel_id for update skip locked;",
        "where g.channel_id = v_lane.channel_id;",
    ),
)

#: A lease that ran out was none: only a consumer that says that it failed counts an attempt.
ATTEMPTS_AT_FAILURE = (
    Edit(f"{_CONSUME}/recover.sql", "row(p_ids, p_lease.attempt, ", "row(p_ids, p_lease.attempt - 1, "),
)

#: No lease is taken back from a dead worker.
NO_REAPER = (Edit(f"{_CONSUME}/recover.sql", "begin\n  for v_lease in\n", "begin\n  return 0;\n  for v_lease in\n"),)

#: The next message of an ordering key becomes ready whether or not an earlier one is on its way.
FIFO_WITHOUT_EARLIER = (
    Edit(
        f"{_CONSUME}/raise_heads.sql",
        "where q.channel_id = k.channel_id and q.ordering_key = k.ordering_key\n",
        "where q.channel_id = k.channel_id and q.ordering_key = k.ordering_key and q.waits = 1\n",
    ),
)

#: An idempotency key is free again when its message ends.
IDEMPOTENCY_WHILE_ACTIVE = (
    Edit("2_doors/holds_key.sql", "return v_end.status = 'completed'", "return v_end.status = 'never'"),
)

#: A settle of many takes their leases in the order in which they were named.
UNSORTED_SETTLE = (
    Edit(
        f"{_SETTLE}/take_leases.sql",
        "group by u.lo, u.attempt order by u.lo, u.attempt",
        "group by u.lo, u.attempt order by min(u.n)",
    ),
)

#: Lines are made into runs of a lane that another transaction holds.
FOLD_WITHOUT_LOCK = (
    Edit(
        f"{_CONSUME}/lock_lanes.sql",
        "where l.ctid = n.at for update skip locked offset 0) l",
        "where l.ctid = n.at offset 0) l",
    ),
)

#: A visit that ends in the middle of a lane moves the head past the run that is next.
HEAD_PAST_RUN = (
    Edit(f"{_CONSUME}/visit_lane.sql", "    v_id := v_run.first_id;\n", "    v_id := v_run.first_id + 1;\n"),
)

_LOWERED = "case when (v_low.due_at, v_low.first_id) < (l.head_due, l.head_id) then v_low"

#: A line that belongs before the head of its lane leaves the head where it is.
HEAD_STAYS = (
    Edit(f"{_CONSUME}/fold_late.sql", f"{_LOWERED}.due_at else l.head_due end", "l.head_due"),
    Edit(f"{_CONSUME}/fold_late.sql", f"{_LOWERED}.first_id else l.head_id end", "l.head_id"),
)

#: A row of ends spans as many ids as the settle happens to.
END_NOT_SPLIT = (
    Edit("2_doors/end.sql", "if p_ids[v_n] - p_ids[1] < 4096 then", "if p_ids[v_n] - p_ids[1] < 1000000 then"),
)

_CHECKS = "  v_any := v_ids is not null;\n"
_ASKS = f"""  v_tombs := exists (select 1 from menzil.withdrawn);
  v_open := menzil._register('menzil.withdrawn_xid') >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint;
  perform pg_sleep(0.05);
{_CHECKS}"""

#: A dequeue asks for withdrawals before it has locked a lane. The wait makes the gap between the two longer.
WITHDRAWALS_BEFORE_LOCK = (
    Edit(f"{_CONSUME}/message_dequeue.sql", _CHECKS, _ASKS),
    Edit(
        f"{_CONSUME}/message_dequeue.sql",
        "  v_any boolean;\n",
        "  v_any boolean;\n  v_tombs boolean;\n  v_open boolean;\n",
    ),
    Edit(f"{_CONSUME}/message_dequeue.sql", "if v_turn.open or v_turn.tombs or", "if v_open or v_tombs or"),
    Edit(f"{_CONSUME}/message_dequeue.sql", "v_now, v_turn.open, v_turn.tombs)", "v_now, v_open, v_tombs)"),
)

#: A proof does not name the transactions that are still open: their lines are taken for folded.
PROOF_WITHOUT_LATE = (
    Edit(
        f"{_CONSUME}/fold.sql",
        "union select x.x from pg_snapshot_xip(v_look.snap) x(x) where x.x < v_from)",
        "union select x.x from pg_snapshot_xip(v_look.snap) x(x) where false)",
    ),
)

#: A line of a lane that another transaction holds is forgotten by the proof.
LEFT_LINES_FORGOTTEN = (
    Edit(
        f"{_CONSUME}/fold.sql",
        "from unnest(v_left) l(x) where l.x < v_from union",
        "from unnest(v_left) l(x) where false union",
    ),
)

#: The log is emptied when the snapshot of a fold shows no line: TRUNCATE waits for senders and takes their lines too.
LOG_TRUNCATED = (
    Edit(
        f"{_CONSUME}/fold.sql",
        "  if v_rows is null then\n    return 0;\n",
        "  if v_rows is null then\n    truncate menzil.line;\n    return 0;\n",
    ),
)

_SHORT = "2_doors/short_way.sql"
_FRESH = "2_doors/fresh_way.sql"
_WITHDRAWALS = (
    "case when not exists (select 1 from menzil.withdrawn)"
    " then coalesce(pg_sequence_last_value('menzil.withdrawn_xid'), 0) end"
)


def _made_anew(function: str) -> Edit:
    """A function that has the text of the short way in it."""
    return Edit(f"{_CONSUME}/{function}.sql", "language plpgsql security definer", "language plpgsql security definer")


#: The short way of a dequeue does not ask whether messages are being withdrawn.
SHORT_WAY_WITHOUT_WITHDRAWALS = (
    Edit(_SHORT, _WITHDRAWALS, "0"),
    _made_anew("message_dequeue"),
    _made_anew("message_next"),
)

#: The fresh way of a dequeue does not ask whether messages are being withdrawn.
FRESH_WAY_WITHOUT_WITHDRAWALS = (
    Edit(_FRESH, _WITHDRAWALS, "0"),
    _made_anew("message_dequeue"),
)

#: Housekeeping waits for a lock that it wants for itself alone, and every other statement waits behind it.
HOUSEKEEPING_WITHOUT_TIMEOUT = (
    Edit(
        "4_housekeeping/cleanup_old_archive_partitions.sql",
        "set lock_timeout = '50ms' set jit = off",
        "set lock_timeout = 0 set jit = off",
    ),
)
