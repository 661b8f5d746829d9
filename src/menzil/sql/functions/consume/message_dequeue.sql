-- Leases up to p_limit messages for p_lock_ms milliseconds: highest priority first, channels of equal priority in turn,
-- inside a channel by due time, then id. p_channels names the channels to serve, NULL serves all; p_endpoints serves
-- every endpoint and no plain channel.
-- (id, num_attempts) is the lease: every settle and heartbeat must show both. Call it in a short transaction of its own.
drop function if exists menzil.message_dequeue(bigint, integer, text[], text);
create or replace function menzil.message_dequeue(
  p_lock_ms bigint, p_limit integer default 1, p_channels text[] default null, p_worker text default null, p_endpoints boolean default false
) returns table (
  id bigint, channel text, content bytea, payload jsonb, state bytea, num_attempts bigint, headers jsonb, correlation_id uuid, metadata jsonb,
  ordering_key text, priority integer, retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz,
  unlock_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_unlock timestamptz;
  v_only integer[];
  v_left integer := p_limit;
  v_before integer;
  v_width integer := least(8, p_limit);
  v_from smallint := 0;
  v_turn record;
  v_visit record;
  v_leased bigint[] := '{}';
  v_waited boolean := false;
  v_push boolean := coalesce(p_endpoints, false);
begin
  v_only := menzil._check_dequeue(p_lock_ms, p_limit, p_channels);
  if v_push and p_channels is not null then
    perform menzil._refuse_value('Either channels are named or all endpoints are served.', 'Dequeue twice to do both.');
  end if;
  perform menzil._tend(v_now);
  for v_round in 1 .. 1000 loop
    -- First statement: lock lanes whose turn it is. Later ones: a new snapshot that sees all committed before the locks.
    v_turn := menzil._take_turns(v_from, clock_timestamp(), v_width, v_left, v_only, v_push);
    if v_turn.rank is null then
      -- Everything that is due may be locked by other consumers: wait for one of them once, shortly, and look again.
      exit when v_waited or v_leased <> '{}' or not menzil._wait_for_lane(v_only, v_push);
      v_waited := true;
      v_from := 0;
      continue;
    end if;
    v_from := v_turn.rank;
    continue when v_turn.lanes is null;
    v_before := v_left;
    -- Parts of the visit: 0 early places, 1 all lanes at once; while messages are being withdrawn, lane by lane instead.
    for v_part in case when v_turn.early then 0 else 1 end .. case when v_turn.careful then cardinality(v_turn.lanes) else 1 end loop
      if v_part = 0 then
        v_visit := menzil._visit_early(v_turn.rank, v_turn.lanes, v_turn.channels, v_turn.rooms, v_turn.epochs, p_lock_ms, p_worker);
        v_turn.lanes := v_visit.lanes;
        v_turn.rooms := v_visit.rooms;
      elsif v_turn.careful then
        v_visit := menzil._visit_carefully(v_turn.rank, v_turn.lanes[v_part], v_turn.channels[v_part], v_turn.low_dues[v_part], v_turn.low_ids[v_part],
          v_turn.rooms[v_part], v_turn.epochs[v_part], p_lock_ms, p_worker);
      elsif cardinality(v_turn.lanes) = 1 then
        v_visit := menzil._visit_lane(v_turn.rank, v_turn.lanes[1], v_turn.channels[1], v_turn.low_dues[1], v_turn.low_ids[1], v_turn.rooms[1],
          v_turn.epochs[1], p_lock_ms, p_worker);
      else
        v_visit := menzil._visit_lanes(v_turn.rank, v_turn.lanes, v_turn.channels, v_turn.low_dues, v_turn.low_ids, v_turn.rooms, v_turn.epochs,
          p_lock_ms, p_worker);
      end if;
      continue when v_visit.ids is null;
      v_unlock := v_visit.at + p_lock_ms * interval '1 ms';
      if v_visit.leased < cardinality(v_visit.ids) then
        v_visit.ids := menzil._sort_out(v_visit.ids, v_visit.expired, v_visit.at);
        continue when v_visit.ids = '{}';
      end if;
      if v_turn.limited then
        perform menzil._pass_gates(v_visit.ids, v_visit.at);
      end if;
      if v_turn.probes is not null then
        perform menzil._send_probes(v_visit.ids, v_turn.probes, v_visit.at);
      end if;
      if cardinality(v_turn.lanes) = 1 then   -- one pass over the index, and its order is the lane's
        return query
          select m.id, v_turn.names[1], m.content, m.payload, m.state, m.attempts + 1, m.headers, m.correlation_id, m.metadata, m.ordering_key,
                 10 - m.rank, m.retry_count, m.created_at, m.scheduled_at, m.expires_at, v_unlock
            from menzil.message m where m.id = any (v_visit.ids) order by m.due_at, m.id;
      else
        return query
          select m.id, v_turn.names[array_position(v_turn.channels, m.channel_id)], m.content, m.payload, m.state, m.attempts + 1, m.headers,
                 m.correlation_id, m.metadata, m.ordering_key, 10 - m.rank, m.retry_count, m.created_at, m.scheduled_at, m.expires_at, v_unlock
            from unnest(v_visit.ids) u(id) cross join lateral (select m.* from menzil.message m where m.id = u.id offset 0) m;
      end if;
      v_leased := v_leased || v_visit.ids;
      v_left := v_left - cardinality(v_visit.ids);
    end loop;
    exit when v_left <= 0;
    -- As many lanes as it takes if they give like these did; more and more when these gave nothing.
    v_width := least(128, v_left, case when v_before > v_left then (v_left * cardinality(v_turn.lanes)) / (v_before - v_left) + 1 else v_width * 4 end);
  end loop;
  if v_leased <> '{}' then
    insert into menzil.lease_batch (unlock_at, ids) values (v_unlock, v_leased);
    if current_setting('synchronous_commit') = 'off' then
      -- A lease lost by a crash would hand out its attempt number again, and two could settle with it.
      perform set_config('synchronous_commit', 'on', true);
    end if;
  end if;
end $$;
