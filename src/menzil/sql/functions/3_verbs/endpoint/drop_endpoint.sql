-- Removes an endpoint that has no messages left; its name is free again. Its secrets go at once, its history stays.
create or replace function menzil.drop_endpoint(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_endpoint menzil.channel := menzil._endpoint_for(p_name);
begin
  perform menzil._refuse_replica();
  if menzil._count_channel(v_endpoint.id) > 0 then
    raise exception using errcode = '55006', message = format('Endpoint %s still has messages.', quote_literal(p_name)),
      hint = 'Wait until they are delivered, cancel them with menzil.purge_endpoint(name), or let menzil.channel_release(name) drop it when it has drained.';
  end if;
  update menzil.channel c set dropped_at = clock_timestamp() where c.id = v_endpoint.id;
  perform menzil._event('endpoint.dropped', 'endpoint', p_name, v_endpoint.config, null,
    jsonb_build_object('id', v_endpoint.id, 'protocol', v_endpoint.protocol));
end $$;
