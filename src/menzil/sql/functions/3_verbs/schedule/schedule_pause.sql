-- A paused schedule lets its slots pass. Resuming looks for the next slot from now on: what passed does not fire.
-- Both may be called twice; only a change is an event.
create or replace function menzil.schedule_pause(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._schedule_set_paused(p_name, true) $$;

create or replace function menzil.schedule_resume(p_name text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$ select menzil._schedule_set_paused(p_name, false) $$;

create or replace function menzil._schedule_set_paused(p_name text, p_paused boolean) returns void
language plpgsql as $$
declare
  v_schedule menzil.schedule;
begin
  select s.* into v_schedule from menzil.schedule s where s.name = p_name for update;
  if not found then
    perform menzil._refuse_schedule(p_name);
  elsif v_schedule.paused = p_paused then
    return;
  end if;
  update menzil.schedule s
     set paused = p_paused,
         next_at = case when p_paused then s.next_at else menzil.cron_next(s.cron, s.time_zone, clock_timestamp()) end
   where s.id = v_schedule.id;
  perform menzil._event(case when p_paused then 'schedule.paused' else 'schedule.resumed' end, 'schedule', p_name, null, null);
end $$;
