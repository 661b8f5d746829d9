-- Of the p_window newest messages below p_before, those that match: up to p_limit ids, newest first. What is null is not asked for. Where
-- fewer match, one row more says how far the look went: the oldest message that was passed, when it was created, and how many were passed.
-- Looks at 1,000 messages, then at more: often the first ones suffice. Ends, leases and errors are read by span and only where they are
-- asked for, not looked up for each message.
create or replace function menzil.messages_in_window(
  p_before bigint, p_window integer, p_limit integer, p_channel text default null, p_status text[] default null, p_ordering_key text default null,
  p_idempotency_key text default null, p_correlation_id uuid default null, p_from timestamptz default null, p_to timestamptz default null, p_error text default null
) returns table (id bigint, created_at timestamptz, passed bigint)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
declare
  v_channels integer[] := case when p_channel is not null then array(select c.id from menzil.channel c where c.name = p_channel) end;   -- also those that are gone
  v_before bigint := p_before;
  v_size integer := least(p_window, 1000);
  v_found bigint[];
  v_ids bigint[] := '{}';
  v_passed bigint := 0;
  v_last bigint;             -- the oldest message that was passed
  v_oldest bigint;
  v_n integer;
begin
  if p_before is null then
    perform menzil._refuse_null('An id');
  end if;
  perform menzil._check_limit(p_window, 100000);
  perform menzil._check_limit(p_limit, 100000);
  loop
    -- The window is read twice by its index, which is cheaper than to keep its rows: first its bounds, then those that match.
    with span as materialized (
      select min(w.id) as low, max(w.id) as high, count(*)::integer as n from (select m.id from menzil.message m where m.id < v_before order by m.id desc limit v_size) w
    ), ended as materialized (   -- an end spans 4096 ids at most
      select unnest(coalesce(d.ids, array(select generate_series(d.lo_id, d.hi_id)))) as id, d.status
        from menzil.done d
       where p_status is not null and d.lo_id > (select s.low from span s) - 4096 and d.lo_id <= (select s.high from span s)
    ), flying as materialized (
      select unnest(coalesce(l.ids, array(select generate_series(l.lo_id, l.hi_id)))) as id from menzil.lease l where p_status && '{pending,processing}'
    ), failed as materialized (
      select r.id from menzil.returned r
       where p_error is not null and r.id >= (select s.low from span s) and r.id <= (select s.high from span s) and position(lower(p_error) in lower(r.last_error)) > 0
    )
    select array(
        select w.id
          from (select m.id, m.created_at, m.channel_id, m.ordering_key, m.idempotency_key, m.correlation_id
                  from menzil.message m where m.id < v_before order by m.id desc limit v_size) w
         where (v_channels is null or w.channel_id = any (v_channels))
           and (p_ordering_key is null or w.ordering_key = p_ordering_key) and (p_idempotency_key is null or w.idempotency_key = p_idempotency_key)
           and (p_correlation_id is null or w.correlation_id = p_correlation_id)
           and (p_from is null or w.created_at >= p_from) and (p_to is null or w.created_at < p_to)
           and (p_error is null or w.id in (select f.id from failed f))
           and (p_status is null
                or w.id in (select e.id from ended e where e.status = any (p_status))
                or 'processing' = any (p_status) and w.id in (select f.id from flying f) and w.id not in (select e.id from ended e)
                or 'pending' = any (p_status) and w.id not in (select f.id from flying f) and w.id not in (select e.id from ended e))
         order by w.id desc limit p_limit - cardinality(v_ids)), s.low, s.n into v_found, v_oldest, v_n
      from span s;
    exit when v_n = 0;   -- there are no more messages
    v_last := v_oldest;
    v_ids := v_ids || v_found;
    v_passed := v_passed + v_n;
    exit when cardinality(v_ids) >= p_limit or v_passed >= p_window or v_n < v_size;
    v_before := v_last;
    v_size := least(p_window - v_passed, v_size * 4);
  end loop;
  return query
    select u.id, null::timestamptz, null::bigint from unnest(v_ids) u(id)
    union all select v_last, (select m.created_at from menzil.message m where m.id = v_last limit 1), v_passed where v_passed > 0 and cardinality(v_ids) < p_limit;
end $$;
