-- Settles the last batch as completed and leases the next, in one call: one round trip and one wait for the disk instead of
-- two. The columns are those of message_dequeue and one more: a token that could not be settled comes back as a row with
-- its outcome, stale or unknown, and no message.
-- The short way serves the common case in one or two statements: a whole batch of a plain channel, and a lane whose first run has
-- more than enough. Everything else, and ten times a second everything, goes the long way of message_complete and
-- message_dequeue: so a schedule, a retry, a higher priority or another lane may be 100 ms late beside a hot lane.
drop function if exists menzil.message_next(bigint[], bigint[], bigint, integer, text[], text, boolean, bigint[]);
select menzil._make_hot('message_next', replace(replace(replace(replace($hot$
create or replace function menzil.message_next(
  p_ids bigint[], p_num_attempts bigint[], p_lock_ms bigint, p_limit integer default 1, p_channels text[] default null, p_worker text default null,
  p_endpoints boolean default false, p_batches bigint[] default null, p_except text[] default null
) returns table (
  id bigint, channel text, content bytea, payload jsonb, state bytea, num_attempts bigint, headers jsonb, correlation_id uuid, metadata jsonb,
  ordering_key text, priority integer, retry_count integer, created_at timestamptz, scheduled_at timestamptz, expires_at timestamptz,
  unlock_at timestamptz, batch bigint, outcome text
)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off
set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_unlock timestamptz;
  v_floor timestamptz;
  v_n integer := cardinality(p_ids);
  v_only integer[];
  v_ended bigint;
  v_ids bigint[];
  v_ends bigint[];
  v_sync text;
  v_held record;   -- the lane whose turn has come
  v_waited boolean;
begin
  -- An expression is prepared anew in every transaction, so the common case comes with few of them.
  if menzil._microseconds(v_now) - menzil._register('menzil.swept_at') not between 0 and 100000 or p_endpoints or p_except is not null or cardinality(p_channels) > 1
     or (p_limit between 1 and 10000 and p_lock_ms between 1 and 604800000 and v_n >= 0) is not true or v_now < {from} or v_now >= {to}
     or current_setting('transaction_isolation') <> 'read committed' then
    return query select o.* from menzil._next_the_long_way(p_ids, p_num_attempts, p_lock_ms, p_limit, p_channels, p_worker, p_endpoints, p_batches, p_except) o;
    return;
  end if;
  v_unlock := v_now + p_lock_ms * interval '1 ms';
  if p_channels is not null then
    v_only[1] := (select c.id from menzil.channel c where c.name = p_channels[1] and c.dropped_at is null);
  else
    v_floor := menzil._instant(menzil._register('menzil.turn_mark'));
  end if;
  loop
    if v_only is null and p_limit = 1 then
      {one message of any channel}
    elsif v_only is null then
      {messages of any channel}
    elsif p_limit = 1 then
      {one message of one channel}
    else
      {messages of one channel}
    end if;
    if v_ended is null and v_n > 0 then   -- not a whole batch, too late, or a channel with limits: settled before a lane is locked
      return query select o.* from menzil._settle_for_next(p_ids, p_num_attempts, p_batches) o;
      v_ended := 0;
      v_now := clock_timestamp();
      v_unlock := v_now + p_lock_ms * interval '1 ms';
      continue;
    end if;
    exit when v_ids is not null;
    v_held := menzil._held_lane(v_floor, v_only, false);
    exit when v_held.at is null or v_held.free;
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
      elsif p_limit = 1 then
        {one message of one channel}
      else
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
    exit;
  end loop;
  if v_n = 0 and cardinality(p_num_attempts) is distinct from 0 then   -- it is refused
    return query select o.* from menzil._settle_for_next(p_ids, p_num_attempts, p_batches) o;
  end if;
  if v_ids is null then
    return query select o.* from menzil._next_the_long_way('{}', '{}', p_lock_ms, p_limit, p_channels, p_worker, p_endpoints, null, p_except) o;
    return;
  end if;
  if current_setting('synchronous_commit') = 'off' then
    v_sync := set_config('synchronous_commit', 'on', true);
  end if;
end $$
$hot$, '{one message of one channel}', menzil._short_way(true, true, true)), '{messages of one channel}', menzil._short_way(true, false, true)),
  '{one message of any channel}', menzil._short_way(true, true, false)), '{messages of any channel}', menzil._short_way(true, false, false)));
