-- Ends a schedule. Messages it has sent stay; its slots go with it.
create or replace function menzil.schedule_drop(p_name text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id bigint;
begin
  delete from menzil.schedule s where s.name = p_name returning s.id into v_id;
  perform menzil._refuse_schedule(p_name) where v_id is null;
  perform menzil._event('schedule.dropped', 'schedule', p_name, jsonb_build_object('id', v_id), null);
end $$;
