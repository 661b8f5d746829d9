-- How many messages died of each cause in each step of time since p_from, among the p_limit newest dead letters. cause_hash is null for
-- letters that the job causes has not come to. Steps are counted from p_from, or from the year 2000 where p_from is infinite.
create or replace function menzil.dlq_deaths(p_from timestamptz, p_step interval, p_limit integer default 20000)
returns table (cause_hash text, at timestamptz, letters bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
begin
  if p_from is null or p_step is null then
    perform menzil._refuse_null(case when p_from is null then 'A time' else 'A step' end);
  elsif p_step not between interval '1 s' and interval '90 days' or extract(month from p_step) <> 0 then
    perform menzil._refuse_value(format('A step of %s is out of range, it must be 1 second to 90 days, and no months.', p_step), 'Use 30 min, 1 hour or 1 day.');
  end if;
  perform menzil._check_limit(p_limit, 100000);
  return query
    select d.cause_hash, date_bin(p_step, d.failed_at, case when isfinite(p_from) then p_from else '2000-01-01 00:00+00'::timestamptz end), count(*)
      from (select d.cause_hash, d.failed_at from menzil.dead_letter d where d.failed_at >= p_from order by d.failed_at desc limit p_limit) d
     group by 1, 2;
end $$;
