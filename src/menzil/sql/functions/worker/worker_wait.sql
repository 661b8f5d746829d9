-- A worker is about to wait: the next send wakes those who LISTEN on menzil_wake. Only a hint, one for all workers: so a
-- busy queue sends no notification at all, and a send pays for one only when somebody waits.
create or replace function menzil.worker_wait() returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  if menzil._register('menzil.wanted') = 0 and (select s.notify from menzil.setting_value s) then
    perform setval('menzil.wanted', 1);
  end if;
end $$;

create or replace function menzil._wake() returns void
language plpgsql as $$
begin
  perform setval('menzil.wanted', 0);
  perform pg_notify('menzil_wake', '');
end $$;
