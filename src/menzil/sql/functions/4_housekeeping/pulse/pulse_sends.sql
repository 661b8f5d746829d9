-- Messages with ids above p_after, up to p_upto, without those that p_covered names, and messages in p_gaps that were committed meanwhile,
-- at most p_limit of those. gaps: what is left of p_gaps, and ids that are not there. cut: there may be more in p_gaps.
-- STABLE: all queries see what the caller's statement sees.
create or replace function menzil._pulse_sends(
  p_after bigint, p_upto bigint, p_covered int8multirange, p_gaps int8multirange, p_limit integer,
  out news menzil.pulse_news[], out gaps int8multirange, out cut boolean
)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off set plan_cache_mode = force_generic_plan as $$
declare
  v_new int8multirange := int8multirange(int8range(p_after, p_upto, '(]')) - coalesce(p_covered, '{}');
  v_found bigint;
  v_late record;
begin
  select array_agg(row(q.channel_id, q.at, 'sent', null, q.n)::menzil.pulse_news), coalesce(sum(q.n), 0) into news, v_found
    from (select m.channel_id, date_bin('1 min', m.created_at, '2000-01-01 00:00:00+00') as at, count(*) as n
            from unnest(v_new) r(ids)
            cross join lateral (select m.channel_id, m.created_at from menzil.message m where m.id >= lower(r.ids) and m.id < upper(r.ids) offset 0) m group by 1, 2) q;
  gaps := '{}';
  cut := false;
  if v_found < (select sum(upper(r.ids) - lower(r.ids)) from unnest(v_new) r(ids)) then
    gaps := v_new - coalesce((
      select range_agg(q.run)
        from (select int8range(min(q.id), max(q.id), '[]') as run
                from (select m.id, row_number() over (order by m.id) as place
                        from unnest(v_new) r(ids)
                        cross join lateral (select m.id from menzil.message m where m.id >= lower(r.ids) and m.id < upper(r.ids) offset 0) m) q
               group by q.id - q.place) q), '{}');
  end if;
  if p_gaps <> '{}' then
    with late as materialized (
      select m.id, m.channel_id, m.created_at, row_number() over (order by m.id) as place
        from (select m.id, m.channel_id, m.created_at from unnest(p_gaps) g(gap)
                cross join lateral (select m.id, m.channel_id, m.created_at from menzil.message m where m.id >= lower(g.gap) and m.id < upper(g.gap) offset 0) m
               limit p_limit) m
    )
    select (select array_agg(row(q.channel_id, q.at, 'sent', null, q.n)::menzil.pulse_news)
              from (select l.channel_id, date_bin('1 min', l.created_at, '2000-01-01 00:00:00+00') as at, count(*) as n from late l group by 1, 2) q) as news,
           (select range_agg(q.run) from (select int8range(min(l.id), max(l.id), '[]') as run from late l group by l.id - l.place) q) as found,
           (select count(*) = p_limit from late) as cut
      into v_late;
    news := coalesce(news, '{}') || coalesce(v_late.news, '{}');
    gaps := gaps + (p_gaps - coalesce(v_late.found, '{}'));
    cut := v_late.cut;
  end if;
end $$;
