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
  v_generation smallint := menzil._generation(v_now);
  v_count integer := cardinality(p_payloads);
  v_channels integer[];
  v_new bigint[];
  v_ids bigint[];
  v_hashes text[];
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
  end if;

  -- Sorted by key: two batches with the same keys wait for each other, they never deadlock.
  insert into menzil.message (id, channel_id, rank, due_at, created_at, scheduled_at, expires_at, payload, ordering_key,
      idempotency_key, payload_hash, correlation_id, headers, metadata)
    select u.id, u.channel, 10 - coalesce(u.priority, 0), coalesce(u.scheduled_at, v_now), v_now, u.scheduled_at, u.expires_at, u.payload,
           u.ordering_key, u.key, u.hash, u.correlation_id, u.headers, u.metadata
      from unnest(v_ids, v_channels, p_priorities, p_scheduled_ats, p_expires_ats, p_payloads, p_ordering_keys, p_idempotency_keys, v_hashes,
                  p_correlation_ids, p_headers, p_metadatas)
           u(id, channel, priority, scheduled_at, expires_at, payload, ordering_key, key, hash, correlation_id, headers, metadata)
     order by u.channel, u.key nulls first, u.id
    on conflict (channel_id, idempotency_key) where idempotency_key is not null do nothing;
  if p_idempotency_keys is not null then
    v_ids := menzil._settle_keys(v_ids, v_channels, p_idempotency_keys, v_hashes);
  end if;

  with placed as materialized (
    select m.id, m.channel_id, m.rank, m.due_at, m.expires_at, m.ordering_key, m.due_at > v_now as later
      from menzil.message m where m.id = any (v_new)
  ), into_scheduled as (
    insert into menzil.scheduled (due_at, id, channel_id, rank, expires_at, ordering_key)
      select p.due_at, p.id, p.channel_id, p.rank, p.expires_at, p.ordering_key from placed p where p.later
  ), into_keys as (
    insert into menzil.key_queue (channel_id, ordering_key, place, id)
      select p.channel_id, p.ordering_key, 1, p.id from placed p where not p.later and p.ordering_key is not null
  ), into_ready as (
    insert into menzil.ready (channel_id, rank, due_at, id, expires_at)
      select p.channel_id, p.rank, p.due_at, p.id, p.expires_at from placed p where not p.later and p.ordering_key is null
       order by p.channel_id, p.rank, p.due_at, p.id
  ), key_arrivals as (
    insert into menzil.arrival (generation, channel_id, ordering_key)
      select distinct v_generation, p.channel_id, p.ordering_key from placed p where not p.later and p.ordering_key is not null
  ), sizes as (
    insert into menzil.size_change (channel_id, change)
      select p.channel_id, p.count from (select q.channel_id, count(*) from placed q group by q.channel_id) p
        cross join lateral (select c.max_size from menzil.channel c where c.id = p.channel_id offset 0) c where c.max_size is not null
  )
  insert into menzil.arrival (generation, channel_ids, ranks, due_ats, ids, spans)
    select v_generation, array_agg(q.channel_id), array_agg(q.rank), array_agg(q.due_at), array_agg(q.id), array_agg(q.count > 1)
      from (select distinct on (p.channel_id, p.rank) p.channel_id, p.rank, p.due_at, p.id, count(*) over (partition by p.channel_id, p.rank)
              from placed p where not p.later and p.ordering_key is null
             order by p.channel_id, p.rank, p.due_at, p.id) q
    having count(*) > 0;
  if menzil._register('menzil.wanted') <> 0 then
    perform menzil._wake();
  end if;
  return v_ids;
end $$;

-- Replaces the ids of messages whose key is held by another, live or ended, by the holder's.
create or replace function menzil._settle_keys(p_ids bigint[], p_channels integer[], p_keys text[], p_hashes text[]) returns bigint[]
language plpgsql as $$
declare
  v_keys text[] := array(select u.key from unnest(p_keys) with ordinality u(key, n) order by u.n);   -- counts from 1, whatever was given
  v_ids bigint[] := p_ids;
  v_other bigint;
  v_live boolean;
begin
  for i in 1 .. cardinality(p_ids) loop
    continue when v_keys[i] is null;
    v_live := exists (select 1 from menzil.message m where m.id = p_ids[i]);
    v_other := case when v_live then menzil._used_key(p_channels[i], v_keys[i], p_hashes[i], true)
                    else menzil._holder_of_key(p_channels[i], v_keys[i], p_hashes[i]) end;
    if v_other is null and not v_live then
      raise exception using errcode = '40001', message = format('The message with idempotency key %s ended while it was looked at.',
        quote_literal(menzil._shown(v_keys[i]))), hint = 'Try again.';
    elsif v_other is not null then
      delete from menzil.message m where m.id = p_ids[i];
      v_ids[i] := v_other;
    end if;
  end loop;
  return v_ids;
end $$;
