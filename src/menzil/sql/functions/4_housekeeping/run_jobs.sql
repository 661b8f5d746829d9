-- Every job that is due, once, each in a transaction of its own. Not SECURITY DEFINER and without SET: only then may it commit.
create or replace procedure menzil.run_jobs(p_worker text default null)
language plpgsql as $$
declare
  v_began timestamptz := clock_timestamp();
  v_name text;
begin
  loop
    commit;   -- the level can be chosen before the first query of a transaction only; the role may have another default
    set transaction isolation level read committed;
    v_name := menzil.job_claim(p_worker, v_began);
    commit;
    set transaction isolation level read committed;   -- before the next expression, which is a query
    exit when v_name is null;
    perform menzil.job_run(v_name);
  end loop;
end $$;
