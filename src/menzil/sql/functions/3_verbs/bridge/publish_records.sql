-- Records, none with a fault, become events of a type.
create or replace function menzil._publish_records(p_event_type text, p_records menzil.incoming[]) returns void
language plpgsql as $$
begin
  perform menzil.publish_batch(array(
    select jsonb_build_object('event_type', p_event_type, 'payload', r.payload, 'idempotency_key', r.idempotency_key, 'correlation_id', r.correlation_id,
                              'ordering_key', r.ordering_key, 'headers', r.headers, 'metadata', r.metadata)
      from unnest(p_records) with ordinality r(payload, content, fault, ordering_key, idempotency_key, correlation_id, headers, metadata, body, n) order by r.n));
end $$;
