-- Takes a staging table away. A task that still writes into it is not waited for: the table is then left to the reaper.
create or replace function menzil._drop_staging(p_staging text) returns boolean
language plpgsql set lock_timeout = '1s' as $$
begin
  execute format('drop table if exists menzil.%I', p_staging);
  return true;
exception when lock_not_available then
  return false;
end $$;
