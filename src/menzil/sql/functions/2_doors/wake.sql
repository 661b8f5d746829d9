-- Wakes workers that wait. A send calls it only when a worker has said that it waits.
create or replace function menzil._wake() returns void
language plpgsql as $$
begin
  perform setval('menzil.wanted', 0);
  perform pg_notify('menzil_wake', '');
end $$;
