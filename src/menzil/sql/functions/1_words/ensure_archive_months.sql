-- Makes the partitions of this month and the next ones where they are missing. Cheap when nothing is missing.
create or replace function menzil._ensure_archive_months(p_now timestamptz, p_ahead integer) returns integer
language plpgsql set timezone = 'UTC' as $$
declare
  v_month timestamptz;
  v_made integer := 0;
begin
  for v_month in
    select q.month from (select (date_trunc('month', p_now at time zone 'UTC') + g.n * interval '1 month') at time zone 'UTC' as month
                           from generate_series(0, p_ahead) g(n)) q
     where not exists (select 1 from menzil.archive_month m where m.month_start = q.month) order by 1
  loop
    v_made := v_made + menzil._make_archive_month(v_month);
  end loop;
  return v_made;
end $$;
