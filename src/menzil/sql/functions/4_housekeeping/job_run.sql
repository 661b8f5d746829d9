-- Does one round of a job, and notes how it went. Returns how many rows it changed; null: it failed.
create or replace function menzil.job_run(p_name text) returns bigint
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set lock_timeout = '500ms' as $$
declare
  v_call text := (select j.call from menzil.job j where j.name = p_name);
  v_count bigint;
  v_error text;
begin
  if v_call is null then
    raise exception using errcode = '42704', message = format('There is no job %s.', quote_literal(menzil._shown(coalesce(p_name, 'NULL')))),
      hint = 'The view menzil.jobs lists them.';
  elsif current_setting('transaction_isolation') <> 'read committed' then
    -- An older snapshot does not show messages whose senders have ended: the jobs that count sends would count nothing and say 0.
    raise exception using errcode = '25001', message = 'Jobs run in READ COMMITTED transactions only.',
      hint = 'Use call menzil.run_jobs(), which chooses the level, or begin isolation level read committed.';
  end if;
  begin
    execute 'select ' || v_call into v_count;
  exception when others then
    v_error := left(format('%s: %s', sqlstate, sqlerrm), 1000);
  end;
  -- A round that met its limit has left something: the next one need not wait.
  update menzil.job j set last_count = v_count, last_error = v_error, next_at = case when v_count >= 1000 then clock_timestamp() else j.next_at end
   where j.name = p_name;
  return v_count;
end $$;
