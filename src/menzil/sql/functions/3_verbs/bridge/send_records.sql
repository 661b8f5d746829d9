-- Records, none with a fault, become messages of a channel. The same as menzil.send_many, for bodies of both kinds.
create or replace function menzil._send_records(p_channel text, p_records menzil.incoming[]) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_channel menzil.channel := menzil._channel_for(p_channel);
  v_count integer := cardinality(p_records);
  v_new bigint[];
  v_ids bigint[];
  v_key record;
begin
  if v_count = 0 then
    return;
  elsif not v_channel.enabled or v_channel.released_at is not null then
    perform menzil._refuse_closed(p_channel, v_channel.released_at is not null);
  end if;
  perform menzil._check_room_for(array_fill(v_channel.id, array[v_count]), s.max_queue_size) from menzil.setting_value s;
  v_new := array(select nextval('menzil.message_id') from generate_series(1, v_count));
  v_ids := v_new;
  for v_key in   -- in their order, so that two batches wait for each other and never deadlock
    select u.*, first_value(u.n) over same as first, first_value(u.hash) over same as first_hash
      from (select r.n, r.idempotency_key as key, menzil._payload_hash(r.payload, r.content) as hash
              from unnest(p_records) with ordinality r(payload, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, body, n)
             where r.idempotency_key is not null) u
    window same as (partition by u.key order by u.n) order by u.key, u.n
  loop
    if v_key.n = v_key.first then
      v_ids[v_key.n] := menzil._take_key(v_channel.id, v_key.key, v_new[v_key.n], v_key.hash, v_now);
    elsif v_key.hash is distinct from v_key.first_hash then
      perform menzil._refuse_conflict(v_key.key);   -- two records, of which one would vanish
    else
      v_ids[v_key.n] := v_ids[v_key.first];
    end if;
  end loop;
  insert into menzil.message (id, channel_id, priority, created_at, payload, content, ordering_key, idempotency_key, payload_hash, correlation_id, headers, metadata)
    select r.id, v_channel.id, 0, v_now, r.payload, r.content, r.ordering_key, r.idempotency_key,
           case when r.idempotency_key is not null then menzil._payload_hash(r.payload, r.content) end, r.correlation_id, r.headers, r.metadata
      from rows from (unnest(p_records), unnest(v_new), unnest(v_ids))
           r(payload, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, body, id, answer)
     where r.id = r.answer;
  perform menzil._place_messages(
    array(select row(r.id, v_channel.id, 10::smallint, null, null, r.ordering_key)::menzil.sent
            from rows from (unnest(p_records), unnest(v_new), unnest(v_ids)) with ordinality
                 r(payload, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, body, id, answer, n)
           where r.id = r.answer order by r.n), v_now);
end $$;
