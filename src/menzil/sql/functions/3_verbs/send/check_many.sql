-- Everything that can be wrong with a batch, found before its first insert. Returns the channel of each message.
create or replace function menzil._check_many(
  p_names text[], p_payloads jsonb[], p_priorities integer[], p_scheduled_ats timestamptz[], p_idempotency_keys text[],
  p_correlation_ids uuid[], p_expires_ats timestamptz[], p_ordering_keys text[], p_headers jsonb[], p_metadatas jsonb[]
) returns integer[]
language plpgsql as $$
declare
  v_count integer := cardinality(p_payloads);
  v_channels integer[];
  v_limits menzil.setting_value;
  v_bad record;
begin
  if p_names is null or p_payloads is null then
    perform menzil._refuse_null('An array of names and one of payloads');
  end if;
  if exists (select 1 from unnest(array[cardinality(p_names), cardinality(p_priorities), cardinality(p_scheduled_ats),
        cardinality(p_idempotency_keys), cardinality(p_correlation_ids), cardinality(p_expires_ats), cardinality(p_ordering_keys),
        cardinality(p_headers), cardinality(p_metadatas)]) u(n) where u.n <> v_count) then
    perform menzil._refuse_value('The arrays have different lengths.', 'Give each array one element per message, or NULL for none.');
  end if;
  if v_count = 0 then
    return '{}';
  end if;

  for v_bad in
    select u.name, c.id, c.enabled, c.released_at from (select distinct n.name from unnest(p_names) n(name)) u
      left join lateral (select c.* from menzil.channel c where c.name = u.name and c.dropped_at is null offset 0) c on true
     where c.id is null or not c.enabled or c.released_at is not null
     order by u.name limit 1
  loop
    if v_bad.id is null then
      perform menzil._refuse_unknown(v_bad.name);
    end if;
    perform menzil._refuse_closed(v_bad.name, v_bad.released_at is not null);
  end loop;
  v_channels := array(select c.id from unnest(p_names) with ordinality u(name, n)
                        cross join lateral (select c.id from menzil.channel c where c.name = u.name and c.dropped_at is null offset 0) c order by u.n);

  select s.* into v_limits from menzil.setting_value s;
  for v_bad in
    select u.payload is null as missing, u.priority, octet_length(u.payload::text) as size
      from unnest(p_payloads, p_priorities) u(payload, priority)
     where u.payload is null or octet_length(u.payload::text) > v_limits.max_payload_size or u.priority not between 0 and 10
     limit 1
  loop
    if v_bad.missing then
      perform menzil._refuse_null('Each payload');
    elsif v_bad.priority not between 0 and 10 then
      perform menzil._refuse_priority(v_bad.priority);
    end if;
    perform menzil._refuse_size(v_bad.size, v_limits.max_payload_size);
  end loop;
  if coalesce(cardinality(p_scheduled_ats), cardinality(p_expires_ats), cardinality(p_ordering_keys), cardinality(p_idempotency_keys),
              cardinality(p_headers), cardinality(p_metadatas)) is not null then
    perform menzil._check_options(u.scheduled_at, u.expires_at, u.ordering_key, u.idempotency_key, u.headers, u.metadata, v_limits.max_payload_size)
      from unnest(p_scheduled_ats, p_expires_ats, p_ordering_keys, p_idempotency_keys, p_headers, p_metadatas)
           u(scheduled_at, expires_at, ordering_key, idempotency_key, headers, metadata)
     where u is distinct from null;
  end if;

  if p_idempotency_keys is null then
    perform menzil._check_room_for(v_channels, v_limits.max_queue_size);
  else   -- repeats need no room
    perform menzil._check_room_for(
      array(select u.channel_id from unnest(v_channels, p_idempotency_keys) u(channel_id, key) where u.key is null
            union all
            select u.channel_id from (select distinct on (n.channel_id, n.key) n.* from unnest(v_channels, p_payloads, p_idempotency_keys)
                                             n(channel_id, payload, key) where n.key is not null order by n.channel_id, n.key) u
             where menzil._holder_of_key(u.channel_id, u.key, menzil._payload_hash(u.payload, null)) is null), v_limits.max_queue_size);
  end if;
  return v_channels;
end $$;
