-- A process says that it is alive, what keeps it from taking, and how far behind it is. The answer says whether the bridge has changed
-- since it was opened; no row: the bridge is gone, or the process is not known.
create or replace function menzil.bridge_heartbeat(p_name text, p_instance text, p_error text default null, p_lags jsonb default null)
returns table (paused boolean, updated_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
#variable_conflict use_column
declare
  v_now timestamptz := clock_timestamp();
  v_sum numeric;
begin
  if jsonb_typeof(p_lags) <> 'object' or exists (
       select 1 from jsonb_each(case when jsonb_typeof(p_lags) = 'object' then p_lags end) l
        where jsonb_typeof(l.value) <> 'number' or l.value::text !~ '^[0-9]{1,15}$') then
    perform menzil._refuse_value('The lags must be an object of partitions and whole numbers.', 'Pass an object such as {"orders/0": 42}.');
  end if;
  v_sum := (select sum(l.value::text::numeric) from jsonb_each(p_lags) l);
  return query
    update menzil.bridge_run r set heartbeat_at = v_now, last_error = left(p_error, 2000), lags = coalesce(p_lags, r.lags),
        growing_since = case when v_sum is null then r.growing_since
                             when v_sum > (select coalesce(sum(l.value::text::numeric), 0) from jsonb_each(r.lags) l where jsonb_typeof(l.value) = 'number')
                             then coalesce(r.growing_since, v_now)
                             when v_sum > 0 and v_sum = (select sum(l.value::text::numeric) from jsonb_each(r.lags) l where jsonb_typeof(l.value) = 'number')
                             then r.growing_since end
      from menzil.bridge b
     where b.name = p_name and r.bridge_id = b.id and r.instance = p_instance
    returning b.paused, b.updated_at;
end $$;

-- A process that leaves in good order says so.
create or replace function menzil.bridge_close(p_name text, p_instance text) returns void
language sql security definer set search_path = pg_catalog, menzil, pg_temp as $$
  update menzil.bridge_run r set stopped_at = clock_timestamp(), lags = '{}', growing_since = null
    from menzil.bridge b where b.name = p_name and r.bridge_id = b.id and r.instance = p_instance
$$;
