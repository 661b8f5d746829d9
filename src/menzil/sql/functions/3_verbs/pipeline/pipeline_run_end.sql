-- A run of `menzil pipeline` is over. A run that has ended already stays as it is.
create or replace function menzil.pipeline_run_end(
  p_id bigint, p_rows bigint default null, p_files bigint default null, p_verdict text default null, p_error text default null
) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
begin
  perform menzil._refuse_null('The id of a run') where p_id is null;
  update menzil.pipeline_run r set ended_at = clock_timestamp(), rows = p_rows, files = p_files, verdict = left(p_verdict, 1000),
      error = left(regexp_replace(p_error, '://[^/@ ]*@', '://***@', 'g'), 1000)
   where r.id = p_id and r.ended_at is null;
  if not found and not exists (select 1 from menzil.pipeline_run r where r.id = p_id) then
    raise exception using errcode = '42704', message = format('There is no run %s.', p_id), hint = 'The view menzil.pipeline_runs lists them.';
  end if;
end $$;
