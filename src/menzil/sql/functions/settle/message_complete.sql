-- Done: the messages leave the queue for the archive. Returns what happened to each: settled, stale or unknown.
-- p_responses, one per message or none at all, is what the other side answered.
drop function if exists menzil.message_complete(bigint[], bigint[]);
create or replace function menzil.message_complete(p_ids bigint[], p_num_attempts bigint[], p_responses jsonb[] default null)
returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_lease record;
  v_responses jsonb[];
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if cardinality(p_responses) <> cardinality(p_ids) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give one response per message, or NULL for none.');
  end if;
  v_lease := menzil._take_leases(p_ids, p_num_attempts);
  if v_lease.ids is not null then
    if p_responses is not null then
      v_responses := array(select r.response from unnest(v_lease.ids) with ordinality u(id, n)
                             left join (select distinct on (d.id) d.id, d.response from unnest(p_ids, p_responses) d(id, response)) r on r.id = u.id
                            order by u.n);
    end if;
    if menzil._end_messages(v_lease.ids, 'completed', v_now, v_lease.channels, v_lease.attempts, v_lease.leased_ats, v_lease.workers,
         null, false, v_responses) then
      perform menzil._tell_success(v_lease.channels, v_lease.leased_ats, v_now);
    end if;
    if cardinality(array_remove(v_lease.epochs, null)) > 0 then
      perform menzil._free_slots(v_lease.channels, v_lease.epochs, v_now);
    end if;
    if cardinality(v_lease.ids) = cardinality(p_ids) then
      return query select u.id, 'settled' from unnest(p_ids) u(id);
      return;
    end if;
  end if;
  return query select o.id, o.outcome from menzil._outcomes(p_ids, p_num_attempts, v_lease.ids, 'settled') o;
end $$;

create or replace function menzil.message_complete(p_id bigint, p_num_attempts bigint) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._raise_outcome(p_id, p_num_attempts, (select o.outcome from menzil.message_complete(array[p_id], array[p_num_attempts]) o));
end $$;
