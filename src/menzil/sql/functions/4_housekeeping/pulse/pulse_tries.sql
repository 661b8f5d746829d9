-- Tries that did not end in success and that the place does not cover, at most about p_limit of them. cut: there are more.
-- STABLE: all queries see what the caller's statement sees.
create or replace function menzil._pulse_tries(
  p_place menzil.pulse_place, p_since timestamptz, p_limit integer, out news menzil.pulse_news[], out place menzil.pulse_place, out cut boolean
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
  v_snapshot pg_snapshot := pg_current_snapshot();
  v_last record;
begin
  select q.xid, q.message_id into v_last from menzil._new_tries(p_place, v_snapshot, p_limit) q order by q.xid, q.message_id offset p_limit - 1 limit 1;
  cut := found;
  place := menzil._next_place(p_place, v_snapshot, v_last.xid, v_last.message_id);
  -- A try that failed is counted twice: as such, and for the totals by how it failed.
  select array_agg(row(q.channel_id, q.at, u.what, null, q.n)::menzil.pulse_news) into news
    from (select t.channel_id, date_bin('1 min', t.ended_at, '2000-01-01 00:00:00+00') as at,
                 case when t.outcome <> 'failed' then t.outcome
                      else 'status ' || coalesce(substring(t.error from E'^(?:\\[[A-Z]+\\] )*HTTP ([1-5])[0-9]{2}\\M'), '0') end as how, count(*) as n
            from menzil._new_tries(p_place, v_snapshot, p_limit) t
           where (v_last.xid is null or (t.xid, t.message_id) <= (v_last.xid, v_last.message_id)) and t.ended_at >= p_since group by 1, 2, 3) q
    cross join lateral (select q.how as what union all select 'failed_try' where q.how <> 'deferred') u;
end $$;

-- Rows of attempt that a place does not cover and a snapshot shows, but for those of this transaction. All tries of the last message
-- are among them.
create or replace function menzil._new_tries(p_place menzil.pulse_place, p_snapshot pg_snapshot, p_limit integer) returns setof menzil.attempt
language sql stable as $$
  select t.* from unnest(p_place.late, p_place.late_ids) l(xid, id)
    cross join lateral (select t.* from menzil.attempt t where t.xid = l.xid and t.message_id > l.id order by t.message_id fetch first p_limit rows with ties) t
   where l.xid is distinct from pg_current_xact_id_if_assigned()
  union all
  (select t.* from menzil.attempt t
    where t.xid >= p_place.counted_to and t.xid < pg_snapshot_xmax(p_snapshot) and t.xid is distinct from pg_current_xact_id_if_assigned()
    order by t.xid, t.message_id fetch first p_limit rows with ties)
$$;
