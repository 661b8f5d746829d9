create or replace function menzil._refuse_schedule(p_name text) returns void
language plpgsql as $$
begin
  perform menzil._refuse_null('A schedule name') where p_name is null;
  raise exception using errcode = '42704', message = format('There is no schedule named %s.', quote_literal(menzil._shown(p_name))),
    hint = 'The view menzil.schedules lists them; menzil.schedule_create makes one.';
end $$;
