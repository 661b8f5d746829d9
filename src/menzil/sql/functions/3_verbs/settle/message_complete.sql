-- Done: the messages leave the queue. Returns what happened to each: settled, stale or unknown.
-- p_responses, one per message or none at all, is what the other side answered. p_batches is the column batch of the
-- dequeue: an optional hint that finds the leases faster.
drop function if exists menzil.message_complete(bigint[], bigint[]);
drop function if exists menzil.message_complete(bigint[], bigint[], jsonb[]);
create or replace function menzil.message_complete(p_ids bigint[], p_num_attempts bigint[], p_responses jsonb[] default null, p_batches bigint[] default null)
returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_taken menzil.taken;
  v_responses jsonb[];
  v_settled bigint[] := '{}';
  v_n integer := cardinality(p_ids);
begin
  if cardinality(p_responses) <> v_n then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give one response per message, or NULL for none.');
  end if;
  -- A whole batch without ordering keys, as it was leased: one row out, one row in. What a channel with limits and an endpoint hear of
  -- it is said in the same statement. For one message, which is most often all of its lease, the statement need not prepare to look at others.
  if v_n = 1 and p_responses is null then
    return query
      with gone as (
        delete from menzil.lease l where l.lo_id = p_ids[1] and l.attempt = p_num_attempts[1] and l.hi_id = l.lo_id and l.flags & 4 = 0
          and cardinality(p_num_attempts) = 1
        returning l.attempt, l.leased_at, l.worker, l.channel_id, l.epoch, l.flags
      ), ended as (
        insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker)
          select p_ids[1], p_ids[1], 1, 'completed', g.attempt, g.leased_at, v_now, pg_current_xact_id(), g.worker from gone g returning 1
      ), told as materialized (
        select menzil._give_back(row(p_ids, g.attempt, g.leased_at, g.worker, g.channel_id, g.epoch, g.flags)::menzil.taken, true),
               menzil._tell_success(g.channel_id, 1, g.leased_at, v_now)
          from gone g where g.channel_id is not null
      )
      select p_ids[1], 'settled' from ended left join told on true;
    if found then
      return;
    end if;
  elsif v_n > 0 and p_responses is null then
    return query
      with gone as (
        -- hi_id too: a lease lists its messages in the order of the lane, so its first and last may not be its lowest and highest. One that
        -- lists none holds all between them: then each id that is shown is looked at, for it may be shown twice, or instead of another.
        delete from menzil.lease l where l.lo_id = p_ids[1] and l.attempt = p_num_attempts[1] and l.hi_id = p_ids[v_n]
          and l.hi_id - l.lo_id = v_n - 1 and v_n <= 4096 and l.flags & 4 = 0
          and cardinality(p_num_attempts) = v_n and p_num_attempts[1] = all (p_num_attempts)
          and case when l.ids is not null then l.ids = p_ids else p_ids = array(select generate_series(l.lo_id, l.hi_id)) end
        returning l.attempt, l.leased_at, l.worker, l.channel_id, l.epoch, l.flags
      ), ended as (
        insert into menzil.done (lo_id, hi_id, n, status, attempt, leased_at, ended_at, ended_xid, worker)
          select p_ids[1], p_ids[v_n], v_n, 'completed', g.attempt, g.leased_at, v_now, pg_current_xact_id(), g.worker from gone g returning 1
      ), told as materialized (
        select menzil._give_back(row(p_ids, g.attempt, g.leased_at, g.worker, g.channel_id, g.epoch, g.flags)::menzil.taken, true),
               menzil._tell_success(g.channel_id, v_n, g.leased_at, v_now)
          from gone g where g.channel_id is not null
      )
      select unnest(p_ids), 'settled' from ended left join told on true;
    if found then
      return;
    end if;
  end if;
  perform menzil._check_tokens(p_ids, p_num_attempts);
  for v_taken in select * from menzil._take_leases(p_ids, p_num_attempts, p_batches) loop
    if p_responses is not null then
      v_responses := array(select (select d.response from unnest(p_ids, p_num_attempts, p_responses) d(id, attempt, response)
                                     where d.id = u.id and d.attempt = v_taken.attempt limit 1)
                             from unnest(v_taken.ids) with ordinality u(id, n) order by u.n);
    end if;
    perform menzil._end(v_taken.ids, 'completed', v_taken.attempt, v_taken.leased_at, v_taken.worker, v_now,
      case when array_remove(v_responses, null) <> '{}' then v_responses end);
    -- What the messages held comes back: keys, slots, room.
    if v_taken.flags & 4 <> 0 then
      perform menzil._free_keys(v_taken.ids);
    end if;
    if v_taken.channel_id is not null then
      perform menzil._give_back(v_taken, true);
      perform menzil._tell_success(v_taken.channel_id, cardinality(v_taken.ids), v_taken.leased_at, v_now);
    end if;
    v_settled := v_settled || v_taken.ids;
  end loop;
  return query select o.id, o.outcome from menzil._outcomes(p_ids, p_num_attempts, v_settled, 'settled') o;
end $$;

create or replace function menzil.message_complete(p_id bigint, p_num_attempts bigint) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._raise_outcome(p_id, p_num_attempts, (select o.outcome from menzil.message_complete(array[p_id], array[p_num_attempts]) o));
end $$;
