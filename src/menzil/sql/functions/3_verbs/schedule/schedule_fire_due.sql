-- Fires what is due and returns how many messages it sent. Several sessions may call it at the same time: a schedule
-- that another transaction is firing is left to it. After a downtime a schedule fires once, for the latest slot that
-- was missed; the slots before it are not made up for. A copy of a database fires nothing.
create or replace function menzil.schedule_fire_due(p_limit integer default 100) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
  v_fired integer := 0;
  v_schedule menzil.schedule;
begin
  if p_limit is null then
    perform menzil._refuse_null('A limit');
  elsif p_limit < 1 then
    perform menzil._refuse_value(format('The limit must be at least 1, %s was given.', p_limit), 'Leave it out to fire up to 100 schedules.');
  end if;
  perform menzil._refuse_copy();
  for v_schedule in
    select s.* from menzil.schedule s where not s.paused and s.next_at <= v_now order by s.next_at limit p_limit for update skip locked
  loop
    v_fired := v_fired + menzil._schedule_fire(v_schedule, v_now)::integer;
  end loop;
  return v_fired;
end $$;
