-- Makes a copy live: it gives out messages and fires schedules from now on. True if it was a copy.
create or replace function menzil.adopt() returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_was text := menzil.copy_notice();
begin
  if v_was is null then
    return false;
  end if;
  perform menzil._raise_ids();
  perform menzil._event('database.adopted', 'database', current_database(), (select to_jsonb(h) from menzil.home h), null);
  perform menzil._record_home();
  delete from menzil.worker;   -- those of the original; a worker of this database that is running enters itself again
  delete from menzil.bridge_run;
  return true;
end $$;

-- Lets a database stand still like a copy. For copies that look like their original: a base backup, a snapshot of a disk. True if it
-- was live.
create or replace function menzil.disown() returns boolean
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
begin
  if menzil._is_copy() then
    return false;
  end if;
  perform menzil._event('database.disowned', 'database', current_database(), (select to_jsonb(h) from menzil.home h), null);
  perform menzil._record_home(0);
  return true;
end $$;

-- A new installation, or a dump that came without rows, has an empty place. A copy has the row of its original and keeps it.
select menzil._record_home() from menzil.home h where h.writer is null;
