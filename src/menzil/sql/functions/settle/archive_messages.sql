drop function if exists menzil._archive_messages(bigint[], text, timestamptz, integer[], text[], bigint[], timestamptz[], text[], text[], boolean);

-- Copies messages into the archive, straight from table to table: wide rows kept on the way would cost more than reading
-- them twice. The current month has its partition; for the others it is made first where it is missing.
create or replace function menzil._archive_messages(
  p_ids bigint[], p_status text, p_now timestamptz, p_channel integer[], p_name text[], p_attempts bigint[], p_leased_ats timestamptz[],
  p_workers text[], p_errors text[], p_same boolean, p_responses jsonb[]
) returns void
language plpgsql as $$
declare
  v_month timestamptz := menzil._month_of(p_now);
  v_end timestamptz := (v_month at time zone 'UTC' + interval '1 month') at time zone 'UTC';
  v_left boolean := false;
  v_count integer;
begin
  if not exists (select 1 from menzil.archive_month a where a.month_start = v_month) then
    perform menzil._make_archive_month(v_month);
  end if;
  loop
    insert into menzil.archive (id, status, channel, endpoint_id, priority, num_attempts, retry_count, created_at, scheduled_at, expires_at,
        first_leased_at, leased_at, ended_at, ended_xid, worker, payload, content, payload_hash, ordering_key, idempotency_key, correlation_id,
        headers, metadata, last_error, state, redrive_of, replay_of, response)
      select m.id, p_status, p_name[array_position(p_channel, m.channel_id)], m.channel_id, 10 - m.rank, coalesce(p_attempts[l.n], m.attempts),
             m.retry_count, m.created_at, m.scheduled_at, m.expires_at, coalesce(m.first_leased_at, p_leased_ats[l.n]), p_leased_ats[l.n], p_now,
             pg_current_xact_id(), p_workers[l.n], m.payload, m.content, m.payload_hash, m.ordering_key, m.idempotency_key, m.correlation_id,
             m.headers, m.metadata, coalesce(p_errors[l.n], m.last_error), m.state, m.redrive_of, m.replay_of, p_responses[l.n]
        from menzil.message m
        cross join lateral (select case when p_same then 1 else array_position(p_ids, m.id) end as n offset 0) l
       where m.id = any (p_ids) and (m.created_at >= v_month and m.created_at < v_end) <> v_left;
    get diagnostics v_count = row_count;
    exit when v_left or v_count = cardinality(p_ids);
    v_left := true;
    perform menzil._make_archive_month(s.month)
       from (select distinct menzil._month_of(m.created_at) as month from menzil.message m where m.id = any (p_ids) order by 1) s;
  end loop;
end $$;
