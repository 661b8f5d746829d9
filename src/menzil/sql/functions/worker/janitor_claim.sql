-- Janitors take turns without a leader: whoever moves next_at forward does this round. False: it is not time yet, or
-- somebody else is at it.
create or replace function menzil.janitor_claim(p_name text, p_interval interval, p_worker text default null) returns boolean
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_now timestamptz := clock_timestamp();
  v_due boolean;
begin
  if p_name is null or p_interval is null then
    perform menzil._refuse_null('Name and interval of a janitor');
  elsif length(p_name) not between 1 and 100 or p_interval <= interval '0' or p_interval > interval '10 years' then
    perform menzil._refuse_value('A janitor has a name of 1 to 100 characters and an interval above zero, up to 10 years.', 'For instance ''expiry'', interval ''1 s''.');
  end if;
  select j.next_at <= v_now into v_due from menzil.janitor j where j.name = p_name for update skip locked;
  -- Asked first: an insert would wait for the one who is at it.
  if not found and not exists (select 1 from menzil.janitor j where j.name = p_name) then
    insert into menzil.janitor (name, next_at) values (p_name, v_now) on conflict do nothing;
    v_due := found;
  end if;
  if v_due then
    update menzil.janitor j set next_at = v_now + p_interval, last_run_at = v_now, last_worker = p_worker where j.name = p_name;
  end if;
  return coalesce(v_due, false);
end $$;

-- How the round went.
create or replace function menzil.janitor_done(p_name text, p_count bigint, p_error text default null) returns void
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp as $$
begin
  update menzil.janitor j set last_count = p_count, last_error = left(p_error, 1000) where j.name = p_name;
end $$;
