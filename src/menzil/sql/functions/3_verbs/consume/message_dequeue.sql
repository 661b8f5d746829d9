-- Leases up to p_limit messages for p_lock_ms milliseconds: highest priority first, channels of equal priority in turn,
-- inside a channel by position, then id. p_channels names the channels to serve, NULL serves all; p_endpoints serves
-- every endpoint and no plain channel, but for those that p_except names: a worker names endpoints that have had their share of
-- its slots. p_apart gives every message a lease of its own, for messages that are settled in
-- transactions that stay open: the messages of one lease wait for each other's settles.
-- (id, num_attempts) is the lease: every settle and heartbeat must show both; batch, if it is shown too, finds it faster.
-- Call it in a short transaction of its own: where half of a statement_timeout or transaction_timeout is over, a call that had thousands
-- of expired or cancelled messages to clear away returns none, although the next call finds some.
drop function if exists menzil.message_dequeue(bigint, integer, text[], text, boolean);
drop function if exists menzil.message_dequeue(bigint, integer, text[], text, boolean, boolean);
select menzil._make_hot('message_dequeue', replace(replace(replace(replace(replace($hot$
create or replace function menzil.message_dequeue(
  p_lock_ms bigint, p_limit integer default 1, p_channels text[] default null, p_worker text default null, p_endpoints boolean default false,
  p_apart boolean default false, p_except text[] default null
) returns table (
  id bigint, channel text, content bytea, payload jsonb, state bytea, num_attempts bigint, headers jsonb, correlation_id uuid, metadata jsonb,
  ordering_key text, priority integer, retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz,
  unlock_at timestamptz, batch bigint
)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  -- An expression is prepared anew in every transaction, so the common case comes with few of them.
  v_now timestamptz := clock_timestamp();
  v_floor timestamptz := menzil._instant(menzil._register('menzil.turn_mark'));
  v_swept timestamptz := menzil._instant(menzil._register('menzil.swept_at'));
  v_only integer[];
  v_leases boolean;
  v_schedules boolean;
  v_late boolean;
  v_line bigint;         -- lane of the oldest fresh line, as channel * 16 + rank
  v_newest bigint;       -- lane of the newest, if no lane has its turn and the fresh way may be taken
  v_proof xid8;
  v_due integer;         -- lanes whose turn has come, up to two of each priority
  v_turn_at timestamptz; -- the first of these turns: this dequeue need not look below it
  v_look record;
  v_folded integer;
  v_chores boolean;
  v_left integer;
  v_before integer;
  v_width integer;
  v_from smallint;
  v_turn record;
  v_lane menzil.turn;
  v_lanes integer;
  v_first timestamptz;
  v_channels integer[];
  v_names text[];
  v_visit record;
  v_gate menzil.gate;
  v_gated boolean;
  v_room integer;
  v_reopen timestamptz;
  v_unlock timestamptz;
  v_ids bigint[];
  v_lo bigint;
  v_hi bigint;
  v_n integer;
  v_waited boolean;
  v_held record;         -- the lane whose turn has come
  v_any boolean;
  v_ended boolean;       -- a visit found only messages that expired: their ordering keys have a new head, in lines of this transaction
  v_cleared boolean;     -- a visit cleared messages away: this must be committed before a timeout undoes it
  v_again integer;       -- how often these were folded: a key may have thousands that expired, and the lanes stay locked meanwhile
begin
  if (p_limit between 1 and 10000 and p_lock_ms between 1 and 604800000 and current_setting('transaction_isolation') = 'read committed'
      and (p_channels is null or cardinality(p_channels) = 1 and not p_endpoints)) is not true then
    v_only := menzil._check_dequeue(p_lock_ms, p_limit, p_channels);
  end if;
  if p_endpoints is distinct from false or p_except is not null then
    p_endpoints := coalesce(p_endpoints, false);
    if p_endpoints and p_channels is not null then
      perform menzil._refuse_value('Either channels are named or all endpoints are served.', 'Dequeue twice to do both.');
    elsif p_except is not null and not p_endpoints then
      perform menzil._refuse_value('p_except goes with p_endpoints.', 'Name the channels to serve in p_channels.');
    elsif p_except is not null then
      v_only := array(select c.id from menzil.channel c where c.name = any (p_except));   -- with p_endpoints: every endpoint but these
    end if;
  end if;
  -- What is there to look after: leases and schedules of the last two seconds, and back to the last full look where no dequeue came
  -- for longer; lines that a look would read, which are fresh ones, or late ones while they are few; and whose turn it is. The one channel
  -- that most consumers name is found here too: a statement of its own would cost more.
  select exists (select 1 from menzil.lease b where b.watch_at >= least(v_now, v_swept) - interval '2 s' and b.watch_at <= v_now),
         exists (select 1 from menzil.scheduled d where d.due_at >= least(v_now, v_swept) - interval '2 s' and d.due_at <= v_now),
         f.line, case when t.due = 0 and f.line is not null and not p_endpoints then
           (select n.channel_id::bigint * 16 + coalesce(n.rank, 15) from menzil.line n where n.xid >= k.folded_to order by n.xid desc limit 1) end,
         cardinality(k.late) <= 16 and exists (select 1 from menzil.line n where n.xid = any (k.late)), k.folded_to, t.due, t.turn, greatest(v_floor, t.turn),
         coalesce(v_only, nullif(array(select c.id from menzil.channel c where c.name = p_channels[1]), '{}'))
    into v_leases, v_schedules, v_line, v_newest, v_late, v_proof, v_due, v_turn_at, v_floor, v_only
    from (select count(*) as due, min(l.next_at) as turn from menzil.rank_used u
            cross join lateral (select l.next_at from menzil.lane l where l.rank = u.rank and l.next_at >= v_floor and l.next_at <= v_now
                                 order by l.next_at limit 2) l) t
    left join lateral (select k.folded_to, k.late from menzil.look k order by k.id desc limit 1) k on true
    left join lateral (select n.channel_id::bigint * 16 + coalesce(n.rank, 15) as line from menzil.line n where n.xid >= coalesce(k.folded_to, '0')
                        order by n.xid limit 1) f on true;
  if v_only is null and p_channels is not null then   -- an unknown name, or an array that begins elsewhere than at 1
    v_only := menzil._check_dequeue(p_lock_ms, p_limit, p_channels);
  end if;
  -- The fresh way is worth a try if no lane has its turn, nothing is due, and the oldest and the newest line of the log belong to one
  -- lane of these channels. The look is then put off, for a second and fifty transactions at most, so that a message that wakes an
  -- idle consumer does not wait for it.
  if v_newest = v_line then
    if not p_endpoints and not (p_apart and p_limit > 1) and v_now >= {from} and v_now < {to} and v_line & 15 <> 15 and not v_leases and not v_schedules
       and v_late is not true and (v_only is null or (v_line >> 4)::integer = any (v_only)) and v_now >= v_swept
       and (v_now <= v_swept + interval '100 ms' or v_now <= v_swept + interval '1 s'
            and pg_snapshot_xmax(pg_current_snapshot())::text::bigint - v_proof::text::bigint <= 50) then
      v_unlock := v_now + p_lock_ms * interval '1 ms';   -- of the fresh messages
      {fresh messages}
    end if;
  end if;
  if v_ids is null and (v_leases or v_schedules or v_late or v_line is not null or v_now < v_swept or v_now > v_swept + interval '100 ms') then
    v_look := menzil._tend(v_now, p_limit, v_leases, v_schedules, v_late or v_line is not null, v_turn_at, v_floor);
    v_floor := v_look.floor;
    v_folded := v_look.folded;
    v_chores := v_look.chores;
  end if;
  if v_ids is null and not p_endpoints and (p_limit = 1 or not p_apart and (v_due < 2 and coalesce(v_folded, 0) = 0 or cardinality(v_only) = 1))
     and v_now >= {from} and v_now < {to} then
    v_now := clock_timestamp();   -- later than what was just folded, so that the lane's next turn comes after that of the others
    v_unlock := v_now + p_lock_ms * interval '1 ms';
    if v_only is null and p_limit = 1 then
      {one message of any channel}
    elsif v_only is null then
      {messages of any channel}
    elsif cardinality(v_only) = 1 and p_limit = 1 then
      {one message of one channel}
    elsif cardinality(v_only) = 1 then
      {messages of one channel}
    end if;
    if v_ids is null then
      v_held := menzil._held_lane(v_floor, v_only, false);
      if v_held.at is not null and v_held.free is null then
        -- Another consumer of a hot lane holds it: it is waited for, shortly and once, and the second try is in the same subtransaction.
        v_now := clock_timestamp();
        begin
          perform menzil._wait_for_lane(v_held.at);
          v_waited := true;
          v_now := clock_timestamp();
          v_unlock := v_now + p_lock_ms * interval '1 ms';
          if v_only is null and p_limit = 1 then
            {one message of any channel}
          elsif v_only is null then
            {messages of any channel}
          elsif cardinality(v_only) = 1 and p_limit = 1 then
            {one message of one channel}
          elsif cardinality(v_only) = 1 then
            {messages of one channel}
          end if;
        exception
          when lock_not_available then
            null;
          when query_canceled then   -- after the 50 ms it is a lock timeout: see _wait_for_lane
            if v_waited or clock_timestamp() - v_now not between interval '49 ms' and interval '80 ms' then
              raise;
            end if;
        end;
      end if;
    end if;
  end if;
  if v_ids is not null and v_chores is not true and current_setting('synchronous_commit') <> 'off' then
    return;
  end if;
  v_any := v_ids is not null;
  v_left := p_limit;
  v_width := least(8, p_limit);
  v_from := 0;
  if not v_any then
    with parent as (select from only menzil.message)   -- the parent is locked before its partition: see send
    delete from menzil.run r where false;   -- takes the lock that a visit needs before the one that a read takes: no deadlock with REINDEX
  end if;
  for v_round in 1 .. case when v_any then 0 else 1000 end loop
    -- First statement: lock lanes whose turn it is. Later ones: a new snapshot that sees all committed before the locks.
    exit when v_cleared and menzil._is_late();
    v_turn := menzil._take_turns(v_from, clock_timestamp(), v_width, v_floor, v_only, p_endpoints);
    if v_turn.turns is null and v_ended and not v_any and v_again < 100 is not false then
      v_ended := false;
      v_again := coalesce(v_again, 0) + 1;
      v_from := 0;
      perform menzil._fold(clock_timestamp(), false);
      continue;
    end if;
    if v_turn.turns is null then
      -- Every lane whose turn has come may be held by other consumers: wait for one of them once, shortly, and look again.
      -- Lines that were put aside while their lane was held may be all there is.
      exit when v_waited or v_any or not menzil._wait_for_turn(v_floor, v_only, p_endpoints) and not menzil._fold_aside(clock_timestamp());
      v_waited := true;
      v_from := 0;
      perform menzil._fold(clock_timestamp(), false);
      continue;
    end if;
    v_from := v_turn.rank;
    v_before := v_left;
    select count(*), bool_or(t.gated), min(t.head_due), array_agg(t.channel_id), array_agg(t.name) into v_lanes, v_gated, v_first, v_channels, v_names
      from unnest(v_turn.turns) t;
    for v_part in 1 .. case when v_gated then v_lanes else 1 end loop
      v_now := clock_timestamp();
      v_lane := v_turn.turns[v_part];
      v_gate := null;
      if v_gated or v_lanes = 1 then
        v_room := greatest(1, v_left / (v_lanes - v_part + 1));
        exit when v_left <= 0;
        if v_lane.gated then
          select g.* into v_gate from menzil.gate g where g.channel_id = v_lane.channel_id for update skip locked;
          if not found then
            update menzil.lane l set next_at = v_now + interval '1 ms', v = l.v + 1 where l.ctid = v_lane.at;
            continue;
          end if;
          v_now := clock_timestamp();   -- with the gate locked: later than the end of every message whose slot has come back
          select least(v_room, r.room), r.reopen_at into v_room, v_reopen from menzil._gate_room(v_gate, v_now) r;
          if v_room <= 0 then
            update menzil.lane l set next_at = v_reopen, v = l.v + 1 where l.ctid = v_lane.at;
            continue;
          end if;
        end if;
        v_visit := menzil._visit_lane(v_lane, v_turn.rank, v_room, v_now);
      else
        v_visit := menzil._visit_lanes(v_turn.turns, v_turn.rank,
          array_fill(v_left / v_lanes + 1, array[v_left % v_lanes]) || array_fill(v_left / v_lanes, array[v_lanes - v_left % v_lanes]), v_now);
      end if;
      -- A lane that gave less than it was asked for is empty; if no other of its priority was due, the next priority follows.
      if not v_gated and v_lanes = 1 and v_width > 1 and cardinality(v_visit.ids) < v_room then
        v_from := v_turn.rank + 1;
      end if;
      continue when v_visit.ids is null;
      if v_turn.open or v_turn.tombs or v_visit.flags & 2 <> 0 then
        v_visit.ids := menzil._sort_out(v_visit.ids, v_visit.flags, v_now, v_turn.open, v_turn.tombs);
        if v_visit.ids = '{}' then
          v_cleared := true;
          if v_turn.tombs and (v_gated or v_lanes = 1) then
            perform menzil._clear_head(v_lane.channel_id, v_turn.rank);
          end if;
          if v_visit.flags & 2 <> 0 then
            v_ended := true;
            perform menzil._clear_expired(t.channel_id, v_turn.rank, v_now) from unnest(v_turn.turns) with ordinality t
              where not v_turn.open and (not v_gated or t.at = v_lane.at) and (t.ordinality = 1 or v_gated or not menzil._is_late());
          end if;
          continue;
        end if;
      end if;
      v_any := true;
      v_n := cardinality(v_visit.ids);
      v_unlock := v_now + p_lock_ms * interval '1 ms';
      if v_gate.channel_id is not null then
        perform menzil._pass_gate(v_gate, v_n, v_now);
        if v_gate.circuit = 2 then
          -- An open circuit whose rest is over lets one message through: it is half-open until that message is settled. The gate
          -- has been locked since it was asked, so no other transaction sent a probe.
          v_gate.circuit := 1;
          v_gate := menzil._date_circuit(v_gate, v_now, 0);
          perform menzil._log_circuit(v_gate, 2::smallint);
          perform menzil._store_circuit(v_gate);
        end if;
        if v_gate.max_concurrency is null then
          v_gate.epoch := null;
        end if;
      end if;
      v_lo := v_visit.ids[1];
      v_hi := v_visit.ids[v_n];
      if v_visit.flags & 1 = 0 and not p_apart and v_hi - v_lo = v_n - 1 and (v_gated or v_lanes = 1)
         and v_now < {to} and v_lane.head_due >= {from} and (v_n = 1 or v_visit.ids = array(select generate_series(v_lo, v_hi))) then
        -- Fresh messages of this month in a row: one lease, and one pass over the index of the month. The order of a lane is
        -- that of the clock, and a sender may draw a lower id at a later time: the first and the last id do not say enough.
        insert into menzil.lease (lo_id, attempt, hi_id, channel_id, epoch, flags, leased_at, unlock_at, watch_at, worker)
          values (v_lo, 1, v_hi, v_gate.channel_id, v_gate.epoch, v_visit.flags, v_now, v_unlock, v_unlock, p_worker);
        return query
          select m.id, v_lane.name, m.content, m.payload, null::bytea, 1::bigint, m.headers, m.correlation_id, m.metadata, m.ordering_key,
                 m.priority::integer, 0, m.created_at, m.scheduled_at, m.expires_at, v_unlock, v_lo
            from {body} m where m.id between v_lo and v_hi order by m.id;
      elsif v_visit.flags & 1 = 0 and not p_apart and v_now < {to} and v_first >= {from} then
        -- Fresh messages of this month: one lease.
        select min(u.id), max(u.id) into v_lo, v_hi from unnest(v_visit.ids) u(id);
        insert into menzil.lease (lo_id, attempt, hi_id, channel_id, epoch, flags, leased_at, unlock_at, watch_at, worker, ids)
          values (v_lo, 1, v_hi, v_gate.channel_id, v_gate.epoch, v_visit.flags, v_now, v_unlock, v_unlock, p_worker,
                  case when v_hi - v_lo >= v_n or v_visit.ids <> array(select generate_series(v_lo, v_hi)) then v_visit.ids end);
        return query
          select m.id, v_names[array_position(v_channels, m.channel_id)], m.content, m.payload, null::bytea, 1::bigint, m.headers,
                 m.correlation_id, m.metadata, m.ordering_key, m.priority::integer, 0, m.created_at, m.scheduled_at, m.expires_at, v_unlock, v_lo
            from unnest(v_visit.ids) u(id) cross join lateral (select m.* from {body} m where m.id = u.id offset 0) m;
      else
        return query
          with t as materialized (
            select u.id, u.n, coalesce(t.attempts, 0) + 1 as attempt, coalesce(t.retry_count, 0) as retry_count, t.state, case when p_apart then u.n end as part
              from unnest(v_visit.ids) with ordinality u(id, n) left join lateral (select t.* from menzil.returned t where t.id = u.id offset 0) t on true
          ), l as materialized (
            insert into menzil.lease (lo_id, attempt, hi_id, channel_id, epoch, flags, leased_at, unlock_at, watch_at, worker, ids)
              select min(t.id), t.attempt, max(t.id), v_gate.channel_id, v_gate.epoch, v_visit.flags, v_now, v_unlock, v_unlock, p_worker,
                     case when max(t.id) - min(t.id) >= count(*) or array_agg(t.id order by t.n) <> array_agg(t.id order by t.id) then array_agg(t.id order by t.n) end
                from t group by t.attempt, t.part
            returning menzil.lease.lo_id, menzil.lease.hi_id, menzil.lease.ids
          ), b as materialized (
            select l.lo_id, x.id from l cross join lateral unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) x(id)
          )
          select m.id, v_names[array_position(v_channels, m.channel_id)], m.content, m.payload, t.state, t.attempt, m.headers, m.correlation_id,
                 m.metadata, m.ordering_key, m.priority::integer, t.retry_count, m.created_at, m.scheduled_at, m.expires_at, v_unlock,
                 (select b.lo_id from b where b.id = t.id)
            from t cross join lateral (select m.* from menzil.message m where m.id = t.id offset 0) m order by t.n;
      end if;
      v_left := v_left - v_n;
    end loop;
    exit when v_left <= 0 or v_from > v_turn.last and (v_any or v_ended is not true);
    -- As many lanes as it takes if they give like these did; more and more when these gave nothing.
    v_width := least(128, v_left, case when v_before > v_left then (v_left * v_lanes) / (v_before - v_left) + 1 else v_width * 4 end);
  end loop;
  if v_chores then
    perform menzil._chores(v_now);
  end if;
  if v_any and current_setting('synchronous_commit') = 'off' then
    -- A lease lost by a crash would hand out its attempt number again, and two consumers could settle with it.
    perform set_config('synchronous_commit', 'on', true);
  end if;
end $$
$hot$, '{one message of one channel}', menzil._short_way(false, true, true)), '{messages of one channel}', menzil._short_way(false, false, true)),
  '{one message of any channel}', menzil._short_way(false, true, false)), '{messages of any channel}', menzil._short_way(false, false, false)), '{fresh messages}', menzil._fresh_way()));
