-- The span of ids of messages created from p_from to before p_to; nulls: there are none. The index of a whole month knows
-- its first and last id. Of a part of a month, all ids are looked at: the planner would walk the index up to the part.
-- Refuses a channel that never existed.
create or replace function menzil.archive_span(p_from timestamptz, p_to timestamptz, p_channel text default null, out first_id bigint, out last_id bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set timezone = 'UTC' set jit = off as $$
declare
  v_part record;
  v_found record;
begin
  perform 1 from menzil.message m where false;   -- the parent is locked before a partition of it, as _make_archive_month does it
  if p_from is null or p_to is null then
    perform menzil._refuse_null('A time from and a time to');
  elsif p_channel is not null and not exists (select 1 from menzil.channel c where c.name = p_channel) then
    perform menzil._refuse_unknown(p_channel);
  end if;
  if p_from >= p_to then
    return;
  end if;
  for v_part in
    select 'archive_' || to_char(a.month_start, 'YYYY_MM') as name, a.month_start as starts, a.month_start + interval '1 month' as ends
      from menzil.archive_month a where a.month_start < p_to and a.month_start + interval '1 month' > p_from
    union all select 'archive_default', null, null
  loop
    begin
      if v_part.starts >= p_from and v_part.ends <= p_to then
        execute format('select min(m.id) as low, max(m.id) as high from menzil.%I m', v_part.name) into v_found;
      else
        execute format('select min(m.id + 0) as low, max(m.id + 0) as high from menzil.%I m where m.created_at >= $1 and m.created_at < $2', v_part.name)
          into v_found using p_from, p_to;
      end if;
    exception when undefined_table then   -- a month that was dropped after the snapshot
      continue;
    end;
    first_id := least(first_id, v_found.low);
    last_id := greatest(last_id, v_found.high);
  end loop;
end $$;
