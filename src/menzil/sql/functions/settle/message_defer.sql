-- Not done, not failed: the messages wait again, until p_dequeue_ats or in line from now, and keep what p_states says.
-- Costs no retry. An ordering key stays blocked.
create or replace function menzil.message_defer(
  p_ids bigint[], p_num_attempts bigint[], p_dequeue_ats timestamptz[] default null, p_states bytea[] default null
) returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_lease record;
  v_given record;
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if exists (select 1 from unnest(p_dequeue_ats) u(at) where u.at not between '0001-01-02' and '9999-12-31') then
    perform menzil._refuse_value('A message can be deferred to the years 1 to 9999.', 'Give a nearer time, or NULL for now.');
  elsif cardinality(p_dequeue_ats) <> cardinality(p_ids) or cardinality(p_states) <> cardinality(p_ids) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give each array one element per message, or NULL for none.');
  end if;
  perform menzil._refuse_size(octet_length(u.state), s.max_payload_size) from unnest(p_states) u(state), menzil.setting_value s
    where octet_length(u.state) > s.max_payload_size limit 1;
  select * into v_lease from menzil._take_leases(p_ids, p_num_attempts);
  if v_lease.ids is not null then
    insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker)
      select u.id, u.attempt, u.channel_id, 'deferred', u.leased_at, v_now, u.worker
        from unnest(v_lease.ids, v_lease.attempts, v_lease.channels, v_lease.leased_ats, v_lease.workers) u(id, attempt, channel_id, leased_at, worker);
    select array_agg(coalesce(g.due_at, v_now) order by u.n) as due_ats, array_agg(g.state order by u.n) as states into v_given
      from unnest(v_lease.ids, v_lease.attempts) with ordinality u(id, attempt, n)
      cross join lateral (select d.due_at, d.state from unnest(p_ids, p_num_attempts, p_dequeue_ats, p_states) d(id, attempt, due_at, state)
                           where d.id = u.id and d.attempt = u.attempt limit 1) g;
    perform menzil._wait_again(v_lease.ids, v_lease.attempts, v_lease.leased_ats, v_now, v_given.due_ats, v_given.states);
    perform menzil._tell_nothing(v_lease.channels, v_lease.leased_ats, v_now);
    perform menzil._free_slots(v_lease.channels, v_lease.epochs, v_now);
  end if;
  return query select o.id, o.outcome from menzil._outcomes(p_ids, p_num_attempts, v_lease.ids, 'settled') o;
end $$;

create or replace function menzil.message_defer(
  p_id bigint, p_num_attempts bigint, p_dequeue_at timestamptz default null, p_state bytea default null
) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._raise_outcome(p_id, p_num_attempts,
    (select o.outcome from menzil.message_defer(array[p_id], array[p_num_attempts], array[p_dequeue_at], array[p_state]) o));
end $$;
