-- The bridge of that name, locked for a change, or a refusal.
create or replace function menzil._bridge_for(p_name text) returns menzil.bridge
language plpgsql as $$
declare
  v_bridge menzil.bridge;
begin
  perform menzil._refuse_null('The name of a bridge') where p_name is null;
  select b.* into v_bridge from menzil.bridge b where b.name = p_name for no key update;
  perform menzil._refuse_unknown_bridge(p_name) where v_bridge.id is null;
  return v_bridge;
end $$;
