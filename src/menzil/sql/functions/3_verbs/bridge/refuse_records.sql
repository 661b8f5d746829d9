-- Records with a fault become dead letters at once: messages whose one try failed for good, so that lists, causes, redrive and retention
-- treat them like any other. The body is kept as bytes, up to max_payload_size; the ordering key is kept in the metadata alone, because
-- later records of the key went on.
create or replace function menzil._refuse_records(p_bridge menzil.bridge, p_records menzil.incoming[], p_worker text) returns void
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_most integer := (select s.max_payload_size from menzil.setting_value s);
  v_channel menzil.channel;
  v_ids bigint[];
  v_taken menzil.taken;
begin
  if p_records = '{}' then
    return;
  end if;
  v_channel := menzil._channel_for(coalesce(p_bridge.channel, 'menzil.bridge'));
  v_ids := array(select nextval('menzil.message_id') from generate_series(1, cardinality(p_records)));
  insert into menzil.message (id, channel_id, priority, created_at, content, correlation_id, metadata)
    select r.id, v_channel.id, 0, v_now, substr(t.raw, 1, v_most), r.correlation_id,
           t.metadata || jsonb_build_object('bridge', coalesce(t.metadata -> 'bridge', '{}') || jsonb_strip_nulls(jsonb_build_object(
             'key', left(r.ordering_key, 1024), 'bytes', octet_length(t.raw), 'cut', case when octet_length(t.raw) > v_most then true end)))
      from rows from (unnest(p_records), unnest(v_ids)) r(payload, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, body, id)
      cross join lateral (select coalesce(r.content, convert_to(r.body, 'UTF8'), '') as raw,
                                 coalesce(case when octet_length(r.metadata::text) <= v_most then r.metadata end, '{}') as metadata) t;
  if v_channel.max_size is not null then
    perform menzil._change_size(v_channel.id, cardinality(v_ids));   -- _fail_these takes them off again
  end if;
  v_taken := row(v_ids, 1, v_now, coalesce(p_worker, 'bridge ' || p_bridge.name), null, null, 0);
  perform menzil._fail_these(v_taken, array(
    select row(r.id, left(r.fault, 8192), true, false, null, false, false, null)::menzil.failure
      from rows from (unnest(p_records), unnest(v_ids)) r(payload, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, body, id)
     order by r.id), 'failed', v_now);
end $$;
