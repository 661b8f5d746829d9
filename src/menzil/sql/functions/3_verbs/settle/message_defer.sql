-- Not done, not failed: the messages wait again, until p_dequeue_ats or in line from now, and keep what p_states says.
-- Costs no retry. The new time is the position in the lane: a deferred message goes behind what is due before it. An
-- ordering key stays blocked.
drop function if exists menzil.message_defer(bigint[], bigint[], timestamptz[], bytea[]);
create or replace function menzil.message_defer(
  p_ids bigint[], p_num_attempts bigint[], p_dequeue_ats timestamptz[] default null, p_states bytea[] default null, p_batches bigint[] default null
) returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_taken menzil.taken;
  v_settled bigint[] := '{}';
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if exists (select 1 from unnest(p_dequeue_ats) u(at) where u.at not between '0001-01-02' and '9999-12-31') then
    perform menzil._refuse_value('A message can be deferred to the years 1 to 9999.', 'Give a nearer time, or NULL for now.');
  elsif cardinality(p_dequeue_ats) <> cardinality(p_ids) or cardinality(p_states) <> cardinality(p_ids) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give each array one element per message, or NULL for none.');
  end if;
  perform menzil._refuse_size(octet_length(u.state), s.max_payload_size, 'The state has') from unnest(p_states) u(state), menzil.setting_value s
    where octet_length(u.state) > s.max_payload_size limit 1;
  for v_taken in select * from menzil._take_leases(p_ids, p_num_attempts, p_batches) loop
    with told as materialized (
      select u.id, m.channel_id, m.created_at, g.due_at, g.state from unnest(v_taken.ids) u(id)
        cross join lateral (select m.channel_id, m.created_at from menzil.message m where m.id = u.id offset 0) m
        cross join lateral (select coalesce(d.due_at, v_now) as due_at, d.state from unnest(p_ids, p_num_attempts, p_dequeue_ats, p_states) d(id, attempt, due_at, state)
                             where d.id = u.id and d.attempt = v_taken.attempt limit 1) g
    ), tried as (
      insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker)
        select t.id, v_taken.attempt, t.channel_id, 'deferred', v_taken.leased_at, v_now, v_taken.worker from told t
    )
    insert into menzil.returned as r (id, created_at, attempts, place_at, due_at, first_leased_at, state)
      select t.id, t.created_at, v_taken.attempt, t.due_at, t.due_at, v_taken.leased_at, t.state from told t order by t.id
    on conflict on constraint returned_pkey do update set attempts = excluded.attempts, place_at = excluded.place_at, due_at = excluded.due_at,
      first_leased_at = coalesce(r.first_leased_at, excluded.first_leased_at), lost = false, state = coalesce(excluded.state, r.state);
    perform menzil._return_these(v_taken.ids, v_taken.flags, v_now);
    if v_taken.channel_id is not null then
      perform menzil._give_back(v_taken, false);
      perform menzil._tell_nothing(v_taken.channel_id, v_taken.leased_at, v_now);
    end if;
    v_settled := v_settled || v_taken.ids;
  end loop;
  return query select o.id, o.outcome from menzil._outcomes(p_ids, p_num_attempts, v_settled, 'settled') o;
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
