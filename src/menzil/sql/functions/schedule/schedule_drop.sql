-- Ends a schedule. Messages it has sent stay; its slots go with it.
create or replace function menzil.schedule_drop(p_name text) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_id bigint;
begin
  delete from menzil.schedule s where s.name = p_name returning s.id into v_id;
  if v_id is null then
    perform menzil._refuse_schedule(p_name);
  end if;
  perform menzil._event('schedule.dropped', 'schedule', p_name, jsonb_build_object('id', v_id), null);
end $$;

create or replace function menzil._refuse_schedule(p_name text) returns void
language plpgsql as $$
begin
  if p_name is null then
    perform menzil._refuse_null('A schedule name');
  end if;
  raise exception using errcode = '42704', message = format('There is no schedule named %s.', quote_literal(menzil._shown(p_name))),
    hint = 'The view menzil.schedules lists them; menzil.schedule_create makes one.';
end $$;
