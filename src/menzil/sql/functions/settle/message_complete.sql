-- Done: the messages leave the queue for the archive. Returns what happened to each: settled, stale or unknown.
-- The hot path: leases, bodies and archive in one statement; what most messages do not have follows only when there.
create or replace function menzil.message_complete(p_ids bigint[], p_num_attempts bigint[]) returns table (id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_done record;
begin
  perform menzil._check_tokens(p_ids, p_num_attempts);
  if (select s.archive_completed from menzil.setting_value s) then
    with lease as materialized (
      -- The index visits ids in order, so two settles never deadlock.
      delete from menzil.lease l
       where l.id = any (p_ids)
         and ((l.id, l.attempt) in (select u.id, u.attempt from unnest(p_ids, p_num_attempts) u(id, attempt))) is true
      returning l.id, l.attempt, l.channel_id, l.leased_at, l.worker, l.epoch
    ), gone as materialized (
      delete from menzil.message m where m.id = any (array(select l.id from lease l)) returning m.*
    ), names as materialized (
      select c.id, c.name from menzil.channel c where c.id = any (array(select distinct l.channel_id from lease l))
    ), archived as (
      insert into menzil.archive (id, status, channel, endpoint_id, priority, num_attempts, retry_count, created_at, scheduled_at, expires_at,
          first_leased_at, leased_at, ended_at, ended_xid, worker, payload, content, payload_hash, ordering_key, idempotency_key, correlation_id,
          headers, metadata, last_error, state, redrive_of, replay_of)
        select g.id, 'completed', n.name, g.channel_id, 10 - g.rank, l.attempt, g.retry_count, g.created_at, g.scheduled_at, g.expires_at,
               coalesce(g.first_leased_at, l.leased_at), l.leased_at, v_now, pg_current_xact_id(), l.worker, g.payload, g.content, g.payload_hash,
               g.ordering_key, g.idempotency_key, g.correlation_id, g.headers, g.metadata, g.last_error, g.state, g.redrive_of, g.replay_of
          from gone g join lease l on l.id = g.id join names n on n.id = g.channel_id
        returning tableoid = 'menzil.archive_default'::regclass as stray
    )
    select array_agg(g.id) as ids, array_agg(g.channel_id) as channels, array_agg(g.ordering_key) as keys, array_agg(g.idempotency_key) as idempotency_keys,
           array_agg(g.payload_hash) as hashes, (select array_agg(l.channel_id) from lease l where l.epoch is not null) as slots,
           (select array_agg(l.epoch) from lease l where l.epoch is not null) as epochs, (select bool_or(a.stray) from archived a) as stray
      into v_done from gone g;
  else
    with lease as materialized (
      delete from menzil.lease l
       where l.id = any (p_ids)
         and ((l.id, l.attempt) in (select u.id, u.attempt from unnest(p_ids, p_num_attempts) u(id, attempt))) is true
      returning l.id, l.channel_id, l.epoch
    ), gone as materialized (
      delete from menzil.message m where m.id = any (array(select l.id from lease l))
      returning m.id, m.channel_id, m.ordering_key, m.idempotency_key, m.payload_hash
    )
    select array_agg(g.id) as ids, array_agg(g.channel_id) as channels, array_agg(g.ordering_key) as keys, array_agg(g.idempotency_key) as idempotency_keys,
           array_agg(g.payload_hash) as hashes, (select array_agg(l.channel_id) from lease l where l.epoch is not null) as slots,
           (select array_agg(l.epoch) from lease l where l.epoch is not null) as epochs, false as stray
      into v_done from gone g;
  end if;
  if v_done.ids is not null then
    perform menzil._after_end(v_done.ids, v_done.channels, v_done.keys, v_done.idempotency_keys, v_done.hashes, v_done.stray, v_now);
    if v_done.epochs is not null then
      perform menzil._free_slots(v_done.slots, v_done.epochs, v_now);
    end if;
    if cardinality(v_done.ids) = cardinality(p_ids) then
      return query select u.id, 'settled' from unnest(p_ids) u(id);
      return;
    end if;
  end if;
  return query select o.id, o.outcome from menzil._outcomes(p_ids, p_num_attempts, v_done.ids, 'settled') o;
end $$;

create or replace function menzil.message_complete(p_id bigint, p_num_attempts bigint) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._raise_outcome(p_id, p_num_attempts, (select o.outcome from menzil.message_complete(array[p_id], array[p_num_attempts]) o));
end $$;
