-- Monthly partitions of the archive, by the month (UTC) a message was created in.

create or replace function menzil._month_of(p_at timestamptz) returns timestamptz
language sql immutable parallel safe
return date_trunc('month', p_at at time zone 'UTC') at time zone 'UTC';

-- Makes the partitions of this month and the next ones where they are missing. Cheap when nothing is missing.
create or replace function menzil._ensure_archive_months(p_now timestamptz, p_ahead integer) returns integer
language plpgsql
set timezone = 'UTC' as $$
declare
  v_month timestamptz;
  v_made integer := 0;
begin
  if exists (select 1 from menzil.archive_month m where m.month_start = menzil._month_of(p_now + p_ahead * interval '1 month'))
     and exists (select 1 from menzil.archive_month m where m.month_start = menzil._month_of(p_now)) then
    return 0;
  end if;
  for v_month in
    select (date_trunc('month', p_now at time zone 'UTC') + g.n * interval '1 month') at time zone 'UTC' from generate_series(0, p_ahead) g(n)
  loop
    v_made := v_made + menzil._make_archive_month(v_month);
  end loop;
  return v_made;
end $$;

-- One partition. Rows of its month that had landed in the default partition move into it.
-- ATTACH takes a lock that settles do not wait for, unlike CREATE ... PARTITION OF.
create or replace function menzil._make_archive_month(p_month timestamptz) returns integer
language plpgsql
set timezone = 'UTC' as $$
declare
  v_name text := 'archive_' || to_char(p_month at time zone 'UTC', 'YYYY_MM');
  v_end timestamptz := (p_month at time zone 'UTC' + interval '1 month') at time zone 'UTC';
begin
  insert into menzil.archive_month (month_start) values (p_month) on conflict do nothing;
  if not found or to_regclass('menzil.' || v_name) is not null then
    return 0;
  end if;
  execute format('create table menzil.%I (like menzil.archive including defaults including constraints)', v_name);
  execute format('alter table menzil.%I add constraint only_its_month check (created_at >= %L and created_at < %L)', v_name, p_month, v_end);
  execute format('with stray as (delete from menzil.archive_default d where d.created_at >= %L and d.created_at < %L returning d.*)
                  insert into menzil.%I select * from stray', p_month, v_end, v_name);
  execute format('alter table menzil.archive attach partition menzil.%I for values from (%L) to (%L)', v_name, p_month, v_end);
  -- It spared the attachment a scan; the partition bound says the same.
  execute format('alter table menzil.%I drop constraint only_its_month', v_name);
  return 1;
end $$;

-- Messages that ended in a month without a partition: it is made and they move into it.
create or replace function menzil._rescue_strays() returns void
language plpgsql as $$
begin
  perform menzil._make_archive_month(s.month) from (select distinct menzil._month_of(d.created_at) as month from menzil.archive_default d) s;
end $$;

-- Makes this month's partition and those of the next p_months_ahead months. Returns how many were missing.
create or replace function menzil.maintain_archive_partitions(p_months_ahead integer default 3) returns integer
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  if p_months_ahead is null then
    perform menzil._refuse_null('A number of months');
  elsif p_months_ahead not between 0 and 120 then
    perform menzil._refuse_value('Months ahead must be 0 to 120.', 'Use 3.');
  end if;
  return menzil._ensure_archive_months(clock_timestamp(), p_months_ahead);
end $$;
