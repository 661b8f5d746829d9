-- Enables or disables an endpoint. Only a change is an event.
create or replace function menzil._set_endpoint_enabled(p_name text, p_enabled boolean) returns void
language plpgsql as $$
declare
  v_endpoint menzil.channel := menzil._endpoint_for(p_name);
begin
  perform menzil._refuse_replica();
  if v_endpoint.enabled = p_enabled then
    return;
  end if;
  update menzil.channel c set enabled = p_enabled, updated_at = clock_timestamp() where c.id = v_endpoint.id;
  perform menzil._event(case when p_enabled then 'endpoint.enabled' else 'endpoint.disabled' end, 'endpoint', p_name, null, null,
    jsonb_build_object('id', v_endpoint.id));
end $$;
