-- The same from one JSON array of objects; a key that is not an option is refused, not ignored.
create or replace function menzil.send_many(p_messages jsonb) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_ids bigint[];
  v_wrong text;
begin
  if p_messages is null then
    perform menzil._refuse_null('A JSON array of messages');
  elsif jsonb_typeof(p_messages) <> 'array' or exists (select 1 from jsonb_array_elements(p_messages) m(o) where jsonb_typeof(m.o) <> 'object') then
    perform menzil._refuse_value('The messages must be a JSON array of objects.', 'Pass [{"endpoint": "name", "payload": {}}, ...].');
  end if;
  select k.key into v_wrong from jsonb_array_elements(p_messages) m(o), jsonb_object_keys(m.o) k(key)
   where k.key not in ('endpoint', 'channel', 'payload', 'priority', 'scheduled_at', 'idempotency_key', 'correlation_id', 'expires_at',
                       'ordering_key', 'headers', 'metadata') limit 1;
  if found then
    perform menzil._refuse_value(format('A message has no option %s.', quote_literal(left(v_wrong, 100))),
      'Use endpoint, payload, priority, scheduled_at, idempotency_key, correlation_id, expires_at, ordering_key, headers, metadata.');
  end if;
  begin
    select menzil.send_many(
        coalesce(array_agg(coalesce(m.o ->> 'endpoint', m.o ->> 'channel') order by m.n), '{}'),
        coalesce(array_agg(m.o -> 'payload' order by m.n), '{}'),
        array_agg((m.o ->> 'priority')::integer order by m.n),
        array_agg((m.o ->> 'scheduled_at')::timestamptz order by m.n),
        array_agg(m.o ->> 'idempotency_key' order by m.n),
        array_agg((m.o ->> 'correlation_id')::uuid order by m.n),
        array_agg((m.o ->> 'expires_at')::timestamptz order by m.n),
        array_agg(m.o ->> 'ordering_key' order by m.n),
        array_agg(nullif(m.o -> 'headers', 'null') order by m.n),
        array_agg(nullif(m.o -> 'metadata', 'null') order by m.n))
      into v_ids from jsonb_array_elements(p_messages) with ordinality m(o, n);
  exception when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or numeric_value_out_of_range then
    perform menzil._refuse_value(format('An option has the wrong type: %s.', sqlerrm), 'Give priority a whole number, times as ISO 8601, ids as UUID.');
  end;
  return v_ids;
end $$;
