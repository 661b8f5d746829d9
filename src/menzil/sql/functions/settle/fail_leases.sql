drop function if exists menzil._fail_leases(bigint[], bigint[], integer[], timestamptz[], text[], text[], interval[], text, timestamptz);
drop function if exists menzil._bury(bigint[], bigint[], timestamptz[], text[], text[], boolean, timestamptz);

-- Failures of leases that were just taken back: a retry after its delay, or a dead letter when the error is permanent or
-- the budget is used. max_retries N means N retries after the first try. Returns the ids that died.
create or replace function menzil._fail_leases(
  p_ids bigint[], p_attempts bigint[], p_channels integer[], p_leased_ats timestamptz[], p_workers text[],
  p_errors text[], p_retry_afters interval[], p_outcome text, p_now timestamptz, p_responses jsonb[] default null
) returns bigint[]
language plpgsql as $$
declare
  v_settings menzil.setting_value;
  v_again record;
  v_dead record;
begin
  select s.* into v_settings from menzil.setting_value s;
  insert into menzil.attempt (message_id, attempt, channel_id, outcome, leased_at, ended_at, worker, error, response)
    select u.id, u.attempt, u.channel_id, p_outcome, u.leased_at, p_now, u.worker, u.error, u.response
      from unnest(p_ids, p_attempts, p_channels, p_leased_ats, p_workers, p_errors, p_responses)
           u(id, attempt, channel_id, leased_at, worker, error, response);

  with verdict as materialized (
    select u.*, u.error ~ '^\s*\[(PERMANENT|DISABLE)\]' or m.retry_count >= coalesce((c.retry_policy ->> 'max_retries')::integer, v_settings.default_max_retries) as dead,
           case when p_outcome = 'recovered' then p_now     -- the wait was the lease
                when u.retry_after is not null then p_now + least(u.retry_after, interval '86400 s')
                else p_now + menzil._retry_delay(c.retry_policy, v_settings, m.retry_count) * interval '1 s' end as due_at,
           c.on_dead = 'block' and m.ordering_key is not null as blocks
      from unnest(p_ids, p_attempts, p_channels, p_leased_ats, p_workers, p_errors, p_retry_afters, p_responses)
           u(id, attempt, channel_id, leased_at, worker, error, retry_after, response)
      cross join lateral (select m.retry_count, m.ordering_key from menzil.message m where m.id = u.id offset 0) m
      cross join lateral (select c.retry_policy, c.on_dead from menzil.channel c where c.id = u.channel_id offset 0) c
  )
  select array_agg(v.id) filter (where not v.dead) as ids, array_agg(v.attempt) filter (where not v.dead) as attempts,
         array_agg(v.leased_at) filter (where not v.dead) as leased_ats, array_agg(v.due_at) filter (where not v.dead) as due_ats,
         array_agg(v.error) filter (where not v.dead) as errors,
         array_agg(v.id) filter (where v.dead) as dead_ids, array_agg(v.attempt) filter (where v.dead) as dead_attempts,
         array_agg(v.leased_at) filter (where v.dead) as dead_leased_ats, array_agg(v.worker) filter (where v.dead) as dead_workers,
         array_agg(v.error) filter (where v.dead) as dead_errors, array_agg(v.blocks) filter (where v.dead) as dead_blocks,
         array_agg(v.response) filter (where v.dead) as dead_responses
    into v_again from verdict v;
  if v_again.ids is not null then
    perform menzil._wait_again(v_again.ids, v_again.attempts, v_again.leased_ats, p_now, v_again.due_ats, null, v_again.errors, 1);
  end if;
  if v_again.dead_ids is not null then
    for v_dead in
      select u.blocks, array_agg(u.id) as ids, array_agg(u.attempt) as attempts, array_agg(u.leased_at) as leased_ats, array_agg(u.worker) as workers,
             array_agg(u.error) as errors, array_agg(u.response) as responses
        from unnest(v_again.dead_blocks, v_again.dead_ids, v_again.dead_attempts, v_again.dead_leased_ats, v_again.dead_workers, v_again.dead_errors,
                    v_again.dead_responses)
             u(blocks, id, attempt, leased_at, worker, error, response)
       group by u.blocks
    loop
      perform menzil._bury(v_dead.ids, v_dead.attempts, v_dead.leased_ats, v_dead.workers, v_dead.errors, v_dead.blocks, p_now, v_dead.responses);
    end loop;
  end if;
  if p_outcome = 'failed' then
    perform menzil._tell_failure(p_channels, p_leased_ats, p_errors, p_retry_afters, p_now);
  else   -- a worker that died says nothing about the endpoint
    perform menzil._tell_nothing(p_channels, p_leased_ats, p_now);
  end if;
  if array_to_string(p_errors, ' ') ~ '\[DISABLE\]' then
    perform menzil._disable_gone(p_channels, p_errors);
  end if;
  return v_again.dead_ids;
end $$;

-- An endpoint that says it is gone, and whose config asks for it, refuses messages from now on.
create or replace function menzil._disable_gone(p_channels integer[], p_errors text[]) returns void
language plpgsql as $$
declare
  v_name text;
begin
  for v_name in
    update menzil.channel c set enabled = false, updated_at = clock_timestamp()
     where c.id = any (array(select u.channel_id from unnest(p_channels, p_errors) u(channel_id, error) where u.error ~ '^\s*(\[PERMANENT\]\s*)?\[DISABLE\]'))
       and c.enabled and c.config -> 'auto_disable_on_gone' = 'true'
    returning c.name
  loop
    perform menzil._event('endpoint.disabled', 'endpoint', v_name, '{"enabled": true}', '{"enabled": false}', '{"reason": "gone"}');
  end loop;
end $$;

-- Dead letters: the working list gets a row, the archive another. With p_blocks the ordering key waits for a decision.
create or replace function menzil._bury(
  p_ids bigint[], p_attempts bigint[], p_leased_ats timestamptz[], p_workers text[], p_errors text[], p_blocks boolean, p_now timestamptz, p_responses jsonb[]
) returns void
language plpgsql as $$
begin
  insert into menzil.dead_letter (original_message_id, channel_id, failed_at, priority, num_attempts, retry_count, created_at, scheduled_at, expires_at,
      payload, content, payload_hash, ordering_key, idempotency_key, correlation_id, headers, metadata, last_error, state, redrive_of, replay_of, blocks_key)
    select m.id, m.channel_id, p_now, 10 - m.rank, u.attempt, m.retry_count, m.created_at, m.scheduled_at, m.expires_at,
           m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id, m.headers, m.metadata, u.error, m.state,
           m.redrive_of, m.replay_of, p_blocks
      from unnest(p_ids, p_attempts, p_errors) u(id, attempt, error)
      cross join lateral (select m.* from menzil.message m where m.id = u.id offset 0) m
     order by m.id;
  perform menzil._end_messages(p_ids, 'failed', p_now, null, p_attempts, p_leased_ats, p_workers, p_errors, p_blocks, p_responses);
end $$;
