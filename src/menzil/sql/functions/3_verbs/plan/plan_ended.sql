-- The next ended messages of one channel of a replay, by id. There is no index of messages by channel, so all messages behind the
-- cursor are looked at, up to 63,000 in one step; the count has found where they begin and end. Erased ones are left out.
create or replace function menzil._plan_ended(p_plan menzil.plan, p_target menzil.plan_channel, p_limit integer, out target menzil.plan_channel, out ids bigint[], out created_ats timestamptz[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
declare
  v_since timestamptz := coalesce((p_plan.filter ->> 'since')::timestamptz, '-infinity');
  v_until timestamptz := least((p_plan.filter ->> 'until')::timestamptz, p_plan.created_at);
  v_given bigint[] := case when p_plan.filter ? 'ids' then array(select (i.id)::bigint from jsonb_array_elements_text(p_plan.filter -> 'ids') i(id)) end;
  v_status text := p_plan.filter ->> 'status';
  v_window integer := p_limit;
  v_most integer;
  v_seen record;
begin
  target := p_target;
  ids := '{}';
  created_ats := '{}';
  loop
    v_most := p_limit - cardinality(ids);
    select array_agg(f.id order by f.id) filter (where f.fits) as found, array_agg(f.created_at order by f.id) filter (where f.fits) as created_ats,
           max(f.id) as last, count(*) as n, array_agg(f.id order by f.id) filter (where f.erased) as erased into v_seen
      from (select w.id, w.created_at, d.ended_at is not null and not w.is_empty as fits, d.ended_at is not null and w.is_empty as erased
              from (select m.id, m.created_at, m.channel_id, m.payload is null and m.content is null as is_empty from menzil.message m
                     where v_given is null and m.id > target.cursor_id and m.id <= target.end_id order by m.id limit v_window) w
              left join lateral (select d.ended_at, d.status from menzil.done d
                                  where w.channel_id = target.channel_id and w.created_at >= v_since and w.created_at < v_until
                                    and d.lo_id > w.id - 4096 and d.lo_id <= w.id and d.hi_id >= w.id and (d.ids is null or w.id = any (d.ids))
                                  order by d.lo_id desc limit 1) d on d.ended_at < p_plan.created_at and (v_status is null or d.status = v_status)
            union all
            select w.id, w.created_at, d.ended_at is not null and not w.is_empty, d.ended_at is not null and w.is_empty
              from (select m.id, m.created_at, m.is_empty from unnest(v_given) u(id)
                      cross join lateral (select m.id, m.created_at, m.payload is null and m.content is null as is_empty from menzil.message m
                                           where m.id = u.id and m.channel_id = target.channel_id limit 1 offset 0) m
                     where u.id > target.cursor_id order by u.id limit v_window) w
              left join lateral (select d.ended_at from menzil.done d
                                  where d.lo_id > w.id - 4096 and d.lo_id <= w.id and d.hi_id >= w.id and (d.ids is null or w.id = any (d.ids))
                                  order by d.lo_id desc limit 1) d on true) f;
    target.cursor_id := coalesce(v_seen.last, target.cursor_id);
    target.finished := v_seen.n < v_window;
    if cardinality(v_seen.found) > v_most then
      v_seen.found := v_seen.found[: v_most];
      v_seen.created_ats := v_seen.created_ats[: v_most];
      target.cursor_id := v_seen.found[v_most];
      target.finished := false;
    end if;
    ids := ids || coalesce(v_seen.found, '{}');
    created_ats := created_ats || coalesce(v_seen.created_ats, '{}');
    target.skipped := target.skipped + (select count(*) from unnest(v_seen.erased) e(id) where e.id <= target.cursor_id);
    exit when target.finished or cardinality(ids) >= p_limit or v_window >= 32 * p_limit;
    v_window := v_window * 2;
  end loop;
  target.finished := target.finished or case when v_given is null then not exists (select 1 from menzil.message m where m.id > target.cursor_id and m.id <= target.end_id)
                                             else target.cursor_id >= v_given[cardinality(v_given)] end;
end $$;
