-- Claims the job that is due longest and moves its next run forward. Null: none is due, or other workers are at them.
-- p_due_by: only jobs that were due by then; NULL: by now.
create or replace function menzil.job_claim(p_worker text default null, p_due_by timestamptz default null) returns text
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
  v_name text;
begin
  select j.name into v_name from menzil.job j where j.next_at <= least(p_due_by, v_now) or j.last_run_at > v_now + interval '1 s'   -- the clock was set back
   order by j.next_at, j.name limit 1 for update skip locked;
  if found then
    update menzil.job j set next_at = v_now + j.every, last_run_at = v_now, last_worker = left(p_worker, 255) where j.name = v_name;
  end if;
  return v_name;
end $$;
