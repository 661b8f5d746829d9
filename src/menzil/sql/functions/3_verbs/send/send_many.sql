-- Many messages with their own options in one call: parallel arrays, each NULL or as long as the first.
-- Ids come back in the order given; a message whose idempotency key is already held gets the id that holds it.
create or replace function menzil.send_many(
  p_endpoint_names text[],
  p_payloads jsonb[],
  p_priorities integer[] default null,
  p_scheduled_ats timestamptz[] default null,
  p_idempotency_keys text[] default null,
  p_correlation_ids uuid[] default null,
  p_expires_ats timestamptz[] default null,
  p_ordering_keys text[] default null,
  p_headers jsonb[] default null,
  p_metadatas jsonb[] default null
) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set enable_seqscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_count integer := cardinality(p_payloads);
  v_channels integer[];
  v_new bigint[];
  v_ids bigint[];
  v_hashes text[];
  v_key record;
begin
  v_channels := menzil._check_many(p_endpoint_names, p_payloads, p_priorities, p_scheduled_ats, p_idempotency_keys, p_correlation_ids,
    p_expires_ats, p_ordering_keys, p_headers, p_metadatas);
  if v_count = 0 then
    return '{}';
  end if;
  v_new := array(select nextval('menzil.message_id') from generate_series(1, v_count));
  v_ids := v_new;
  if p_idempotency_keys is not null then
    v_hashes := array(select case when u.key is not null then menzil._payload_hash(u.payload, null) end
                        from unnest(p_payloads, p_idempotency_keys) with ordinality u(payload, key, n) order by u.n);
    -- Keys are taken in their order, so that two batches wait for each other and never deadlock.
    for v_key in
      select u.*, first_value(u.n) over same as first, first_value(u.hash) over same as first_hash
        from unnest(v_new, v_channels, p_idempotency_keys, v_hashes) with ordinality u(id, channel_id, key, hash, n)
       where u.key is not null window same as (partition by u.channel_id, u.key order by u.n) order by u.channel_id, u.key, u.n
    loop
      if v_key.n = v_key.first then
        v_ids[v_key.n] := menzil._take_key(v_key.channel_id, v_key.key, v_key.id, v_key.hash, v_now);
      elsif v_key.hash is distinct from v_key.first_hash then
        perform menzil._refuse_conflict(v_key.key);
      else
        v_ids[v_key.n] := v_ids[v_key.first];
      end if;
    end loop;
  end if;
  insert into menzil.message (id, channel_id, priority, created_at, scheduled_at, expires_at, payload, ordering_key,
      idempotency_key, payload_hash, correlation_id, headers, metadata)
    select u.id, u.channel, coalesce(u.priority, 0), v_now, u.scheduled_at, u.expires_at, u.payload, u.ordering_key, u.key, u.hash,
           u.correlation_id, u.headers, u.metadata
      from unnest(v_new, v_ids, v_channels, p_priorities, p_scheduled_ats, p_expires_ats, p_payloads, p_ordering_keys, p_idempotency_keys, v_hashes,
                  p_correlation_ids, p_headers, p_metadatas)
           u(id, answer, channel, priority, scheduled_at, expires_at, payload, ordering_key, key, hash, correlation_id, headers, metadata)
     where u.id = u.answer;
  perform menzil._place_messages(
    array(select row(u.id, u.channel, (10 - coalesce(u.priority, 0))::smallint, u.scheduled_at, u.expires_at, u.ordering_key)::menzil.sent
            from unnest(v_new, v_ids, v_channels, p_priorities, p_scheduled_ats, p_expires_ats, p_ordering_keys)
                 with ordinality u(id, answer, channel, priority, scheduled_at, expires_at, ordering_key, n) where u.id = u.answer order by u.n), v_now);
  return v_ids;
end $$;
