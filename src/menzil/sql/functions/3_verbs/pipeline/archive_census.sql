-- How many messages archive_fingerprint speaks of, for the same bounds, and how many of their tries did not succeed, with the sums of their ids:
-- an export that reads each message together with its hash is compared with this count, which is made another way. It begins with
-- the ends, joins them with the messages at once, and reads no body.
create or replace function menzil.archive_census(
  p_month timestamptz, p_from text default null, p_until text default null, p_created_from timestamptz default null,
  p_created_until timestamptz default null
) returns table (row_count bigint, id_sum numeric, min_id bigint, max_id bigint, min_created_at timestamptz, max_created_at timestamptz,
               failed_attempt_count bigint, failed_attempt_id_sum numeric)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set timezone = 'UTC' set jit = off
  set plan_cache_mode = force_custom_plan set enable_mergejoin = off as $$
declare
  v_month timestamptz := menzil._exported_month(p_month);
  v_start timestamptz := greatest(v_month, p_created_from);
  v_end timestamptz := least((v_month at time zone 'UTC' + interval '1 month') at time zone 'UTC', p_created_until);
  v_from xid8 := menzil._xid_from(coalesce(p_from, '0'));
  v_until xid8 := menzil._xid_from(coalesce(p_until, '18446744073709551615'));
  v_span record;
  v_found record;
begin
  select * into v_span from menzil.archive_span(v_start, v_end);
  select count(*) as n, coalesce(sum(e.id), 0) as ids, min(e.id) as low, max(e.id) as high, min(m.created_at) as first_at, max(m.created_at) as last_at
    into v_found
    from menzil._ends e join menzil.message m on m.id = e.id
   where m.created_at >= v_start and m.created_at < v_end and e.ended_xid >= v_from and e.ended_xid < v_until
     and e.lo_id > v_span.first_id - 4096 and e.lo_id <= v_span.last_id;
  return query
    select v_found.n, v_found.ids, v_found.low, v_found.high, v_found.first_at, v_found.last_at, count(*), coalesce(sum(t.message_id), 0)
      from menzil.attempts t
      join menzil._ends e on e.id = t.message_id
      join menzil.message m on m.id = e.id
     where t.outcome <> 'completed' and t.message_id between v_found.low and v_found.high
       and m.created_at >= v_start and m.created_at < v_end and e.ended_xid >= v_from and e.ended_xid < v_until
       and e.lo_id > v_span.first_id - 4096 and e.lo_id <= v_span.last_id;
end $$;
