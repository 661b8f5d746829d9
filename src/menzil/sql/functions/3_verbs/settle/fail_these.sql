-- Failures of messages that were taken out of one lease, ids ascending, one failure each: a retry after its delay, or a dead
-- letter when the failure is permanent or the budget is used. max_retries N means N retries after the first try.
-- p_outcome: failed, or recovered, when the lease ran out: then the message is due at once. Returns the ids that died.
create or replace function menzil._fail_these(p_taken menzil.taken, p_failures menzil.failure[], p_outcome text, p_now timestamptz) returns bigint[]
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_settings menzil.setting_value;
  v_dead bigint[];
  v_channels integer[];
begin
  select s.* into v_settings from menzil.setting_value s;
  with told as materialized (
    select f.*, m.channel_id, m.created_at, coalesce(m.scheduled_at, m.created_at) as first_due, coalesce(r.retry_count, 0) as retry_count,
           f.permanent or coalesce(r.retry_count, 0) >= coalesce((c.retry_policy ->> 'max_retries')::integer, v_settings.default_max_retries) as dead, c.retry_policy,
           c.is_endpoint
      from unnest(p_failures) f
      cross join lateral (select m.channel_id, m.created_at, m.scheduled_at from menzil.message m where m.id = f.id offset 0) m
      cross join lateral (select c.retry_policy, c.protocol is not null as is_endpoint from menzil.channel c where c.id = m.channel_id offset 0) c
      left join lateral (select r.retry_count from menzil.returned r where r.id = f.id offset 0) r on true
  ), tried as (
    insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker, error, response)
      select t.id, p_taken.attempt, t.channel_id, p_outcome, p_taken.leased_at, p_now, p_taken.worker, t.error, t.response from told t
  ), noted as (
    insert into menzil.returned as r (id, created_at, attempts, retry_count, place_at, due_at, first_leased_at, lost, last_error)
      select t.id, t.created_at, p_taken.attempt, (not t.dead)::integer, t.first_due,
             case when t.dead then null
                  when p_outcome = 'recovered' then p_now     -- the wait was the lease
                  when t.retry_after is not null and not (t.rest and t.is_endpoint) then p_now + least(t.retry_after, interval '86400 s')
                  -- What an endpoint asks for never shortens the delay. greatest() passes over NULL, and so would least().
                  else p_now + greatest(case when t.retry_after is not null then least(t.retry_after, interval '86400 s') end,
                                        menzil._retry_delay(t.retry_policy, v_settings, t.retry_count) * interval '1 s') end,
             p_taken.leased_at, p_outcome = 'recovered', t.error
        from told t order by t.id
    on conflict (id) do update set attempts = excluded.attempts, retry_count = r.retry_count + excluded.retry_count, due_at = excluded.due_at,
      first_leased_at = coalesce(r.first_leased_at, excluded.first_leased_at), lost = excluded.lost, last_error = excluded.last_error
  )
  select array_agg(t.id order by t.id) filter (where t.dead), array_agg(distinct t.channel_id) into v_dead, v_channels from told t;
  perform menzil._return_these(array(select u.id from unnest(p_taken.ids) u(id) where (u.id = any (v_dead)) is not true), p_taken.flags, p_now);
  if v_dead is not null then
    perform menzil._bury(v_dead, p_taken, p_failures, p_now);
  end if;
  if p_taken.channel_id is not null then
    perform menzil._give_back(p_taken, false);
    if p_outcome = 'failed' then
      perform menzil._tell_failure(p_taken.channel_id, p_failures, p_taken.leased_at, p_now);
    else   -- a worker that died says nothing about the endpoint
      perform menzil._tell_nothing(p_taken.channel_id, p_taken.leased_at, p_now);
    end if;
    if exists (select 1 from unnest(p_failures) f where f.disables) then
      perform menzil._disable_gone(p_taken.channel_id);
    end if;
  end if;
  return v_dead;
end $$;

-- Dead letters: the working list gets a row, and the message ends. With on_dead = 'block' its ordering key waits for a decision.
create or replace function menzil._bury(p_ids bigint[], p_taken menzil.taken, p_failures menzil.failure[], p_now timestamptz) returns void
language plpgsql
set enable_seqscan = off set jit = off as $$
declare
  v_free bigint[];
begin
  with dead as materialized (
    select m.id, m.channel_id, m.created_at, c.on_dead = 'block' and m.ordering_key is not null as blocks, f.error
      from unnest(p_ids) u(id)
      cross join lateral (select m.id, m.channel_id, m.created_at, m.ordering_key from menzil.message m where m.id = u.id offset 0) m
      cross join lateral (select c.on_dead from menzil.channel c where c.id = m.channel_id offset 0) c
      cross join lateral (select f.error from unnest(p_failures) f where f.id = u.id limit 1) f
  ), outlined as materialized (   -- messages that fail together often fail alike, or alike but for a number
    select t.*, menzil._error_outline(t.error) as outline
      from (select d.error, array_agg(d.id) as ids, array_agg(d.channel_id) as channels, array_agg(d.created_at) as times, array_agg(d.blocks) as blocks
              from dead d group by d.error) t
  ), explained as materialized (   -- windows and arrays: a join would compare each error with each
    select o.error, o.ids, o.channels, o.times, o.blocks, first_value(e.cause) over w as cause, first_value(e.error_class) over w as error_class,
           first_value(e.cause_hash) over w as cause_hash
      from (select o.*, row_number() over (partition by o.outline) as n from outlined o) o
      left join lateral (select e.* from menzil._cause_of_outline(o.outline) e where o.n = 1 offset 0) e on true
    window w as (partition by o.outline order by o.n)
  ), listed as (
    insert into menzil.dead_letter (original_message_id, channel_id, created_at, failed_at, num_attempts, last_error, blocks_key, cause, error_class, cause_hash)
      select u.id, u.channel_id, u.created_at, p_now, p_taken.attempt, e.error, u.blocks, e.cause, e.error_class, e.cause_hash
        from explained e cross join lateral unnest(e.ids, e.channels, e.times, e.blocks) u(id, channel_id, created_at, blocks) order by u.id
  )
  select array_agg(d.id) filter (where not d.blocks) into v_free from dead d;
  perform menzil._end(p_ids, 'failed', p_taken.attempt, p_taken.leased_at, p_taken.worker, p_now,
    case when exists (select 1 from unnest(p_failures) f where f.response is not null)
         then array(select (select f.response from unnest(p_failures) f where f.id = u.id limit 1) from unnest(p_ids) with ordinality u(id, n) order by u.n) end);
  if p_taken.flags & 4 <> 0 and v_free is not null then
    perform menzil._free_keys(v_free);
  end if;
  perform menzil._shrink(p_ids);
end $$;

-- An endpoint that says it is gone, and whose config asks for it, refuses messages from now on. A settle must not wait for a
-- transaction that is left open: an endpoint that an admin holds is skipped, and one whose gate or lane a dequeue holds for more
-- than 50 ms. The next message tells it again. menzil._wait_for_lane says why query_canceled is a lock timeout too.
create or replace function menzil._disable_gone(p_channel_id integer) returns void
language plpgsql
set lock_timeout = '50ms' as $$
declare
  v_now timestamptz := clock_timestamp();
  v_name text;
begin
  perform 1 from menzil.channel c where c.id = p_channel_id and c.enabled and c.config -> 'auto_disable_on_gone' = 'true' for no key update skip locked;
  if not found then
    return;
  end if;
  perform menzil._hold_channel(p_channel_id);   -- the trigger on channel needs its gate and lanes
  update menzil.channel c set enabled = false, updated_at = clock_timestamp() where c.id = p_channel_id returning c.name into v_name;
  perform menzil._event('endpoint.disabled', 'endpoint', v_name, '{"enabled": true}', '{"enabled": false}', '{"reason": "gone"}');
exception
  when lock_not_available then
    return;
  when query_canceled then
    if clock_timestamp() - v_now not between interval '49 ms' and interval '80 ms' then
      raise;
    end if;
end $$;
