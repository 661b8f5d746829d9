-- The endpoint of that name, locked for a change, or a refusal.
create or replace function menzil._endpoint_for(p_name text) returns menzil.channel
language plpgsql as $$
declare
  v_endpoint menzil.channel;
begin
  perform menzil._refuse_null('The name of an endpoint') where p_name is null;
  select c.* into v_endpoint from menzil.channel c where c.name = p_name and c.dropped_at is null for no key update;
  perform menzil._refuse_unknown_endpoint(p_name) where v_endpoint.protocol is null;
  return v_endpoint;
end $$;
