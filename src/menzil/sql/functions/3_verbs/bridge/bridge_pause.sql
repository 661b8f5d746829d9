-- A paused bridge takes nothing. Both may be called twice; only a change is an event.
create or replace function menzil.bridge_pause(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._set_bridge_paused(p_name, true) $$;

create or replace function menzil.bridge_resume(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._set_bridge_paused(p_name, false) $$;

create or replace function menzil._set_bridge_paused(p_name text, p_paused boolean) returns void
language plpgsql as $$
declare
  v_bridge menzil.bridge := menzil._bridge_for(p_name);
begin
  if v_bridge.paused = p_paused then
    return;
  end if;
  update menzil.bridge b set paused = p_paused, updated_at = clock_timestamp() where b.id = v_bridge.id;
  perform menzil._event(case when p_paused then 'bridge.paused' else 'bridge.resumed' end, 'bridge', p_name, null, null, jsonb_build_object('id', v_bridge.id));
end $$;
