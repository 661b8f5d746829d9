-- Ends messages: out of the live tables, into the archive, in one statement. The caller has already taken them out of
-- ready, scheduled or lease. With p_keep_key their ordering key stays blocked.
create or replace function menzil._end_messages(
  p_ids bigint[], p_status text, p_now timestamptz,
  p_attempts bigint[] default null, p_leased_ats timestamptz[] default null, p_workers text[] default null, p_errors text[] default null,
  p_keep_key boolean default false
) returns void
language plpgsql as $$
declare
  v_done record;
begin
  with gone as materialized (
    delete from menzil.message m where m.id = any (p_ids) returning m.*
  ), archived as (
    insert into menzil.archive (id, status, channel, endpoint_id, priority, num_attempts, retry_count, created_at, scheduled_at, expires_at,
        first_leased_at, leased_at, ended_at, ended_xid, worker, payload, content, payload_hash, ordering_key, idempotency_key, correlation_id,
        headers, metadata, last_error, state, redrive_of, replay_of)
      select g.id, p_status, n.name, g.channel_id, 10 - g.rank, coalesce(l.attempt, g.attempts), g.retry_count, g.created_at, g.scheduled_at,
             g.expires_at, coalesce(g.first_leased_at, l.leased_at), l.leased_at, p_now, pg_current_xact_id(), l.worker, g.payload, g.content,
             g.payload_hash, g.ordering_key, g.idempotency_key, g.correlation_id, g.headers, g.metadata, coalesce(l.error, g.last_error), g.state,
             g.redrive_of, g.replay_of
        from gone g
        cross join lateral (select c.name from menzil.channel c where c.id = g.channel_id offset 0) n
        left join unnest(p_ids, p_attempts, p_leased_ats, p_workers, p_errors) l(id, attempt, leased_at, worker, error) on l.id = g.id
      returning tableoid = 'menzil.archive_default'::regclass as stray
  )
  select array_agg(g.id) as ids, array_agg(g.channel_id) as channels,
         case when not p_keep_key then array_agg(g.ordering_key) end as keys, array_agg(g.idempotency_key) as idempotency_keys,
         array_agg(g.payload_hash) as hashes, (select bool_or(a.stray) from archived a) as stray
    into v_done from gone g;
  if v_done.ids is not null then
    perform menzil._after_end(v_done.ids, v_done.channels, v_done.keys, v_done.idempotency_keys, v_done.hashes, v_done.stray, p_now);
  end if;
end $$;
